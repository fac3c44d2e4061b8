package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotad/quotad/policy"
)

// chosen reads the word of a step or an expectation, and its fields.
func (v value) chosen(field string, table map[string]word, also ...string) (name string, f map[string]value, ok bool) {
	all, _, ok := v.mapping(fmt.Sprintf("write it like {%s: ...}", field))
	if !ok {
		return "", nil, false
	}
	at, given := all[field]
	if !given {
		v.fail(field+" is missing", fmt.Sprintf("add %s: and one of %s", field, wordsOf(table)))
		return "", nil, false
	}
	name, ok = at.text("choose " + wordsOf(table))
	if !ok {
		return "", nil, false
	}
	w, known := table[name]
	if !known {
		at.fail(fmt.Sprintf("%.40q is no word for this", name), "choose "+wordsOf(table))
		return "", nil, false
	}
	f, ok = v.fields(append([]string{field}, slices.Concat(also, w.required)...), w.optional)
	return name, f, ok
}

func (s *Scenario) readSteps(v value) {
	items, _ := v.list("write a list of {at: 3s, do: ...}")
	for _, item := range items {
		do, f, ok := item.chosen("do", steps, "at")
		if !ok {
			continue
		}
		step := Step{Do: do, pos: item.pos(), At: f["at"].duration(0, s.Duration)}
		s.readStep(&step, f)
		if do == "load" && !slices.ContainsFunc(s.Load, func(l Load) bool { return step.changes(l) }) {
			item.fail("there is no such load to change", "add one to load, with rate: 0 if it is to begin here")
		}
		s.Steps = append(s.Steps, step)
	}
	slices.SortStableFunc(s.Steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	s.checkRedis(v)
}

// checkRedis checks that no step is about a Redis that a failover ended, and none
// but clock about an embedded one.
func (s *Scenario) checkRedis(v value) {
	over, embedded := map[string]bool{}, map[string]bool{}
	for _, step := range s.Steps {
		embedded[step.Region] = embedded[step.Region] || step.Do == "clock"
	}
	for _, step := range s.Steps {
		if !strings.HasSuffix(step.Do, "-redis") {
			continue
		}
		if embedded[step.Region] {
			v.reader.failAt(step.pos, "steps", "the Redis of "+step.Region+" is an embedded one, for its clock is moved", "move the clock of another region, or let this one's Redis be")
		}
		if over[step.Region] {
			v.reader.failAt(step.pos, "steps", "the Redis of "+step.Region+" was failed over before, and only its copy is left", "let failover-redis be the last step about this Redis")
		}
		over[step.Region] = over[step.Region] || step.Do == "failover-redis"
	}
}

// changes says whether a step of the word load is about a load.
func (s Step) changes(l Load) bool {
	return s.Region == l.Region && s.Limit == l.Limit && (s.Key == nil || slices.Equal(s.Key, l.Key))
}

// shortest is the least time for which something is done.
const shortest = 10 * time.Millisecond

// leastBy is the least that by may say: a clock is moved back, too.
func leastBy(do string) time.Duration {
	if do == "clock" {
		return -time.Minute
	}
	return shortest
}

// readStep reads the fields that there are: which may be was checked.
func (s *Scenario) readStep(step *Step, f map[string]value) {
	regions := s.regionNames()
	read := map[string]func(v value){
		"between": func(v value) { step.Between = v.someOf(regions) },
		"and":     func(v value) { step.And = v.someOf(regions) },
		"one-way": func(v value) { step.OneWay = v.flag() },
		"only":    func(v value) { step.Only = v.oneOf([]string{"udp", "tcp"}) },
		"region":  func(v value) { step.Region = v.oneOf(regions) },
		"limit":   func(v value) { step.Limit = v.oneOf(s.limitNames()) },
		"rate":    func(v value) { step.Rate = v.integer(0, MaxRate) },
		"by":      func(v value) { step.By = v.duration(leastBy(step.Do), time.Minute) },
		"for":     func(v value) { step.For = v.duration(shortest, s.Duration) },
		"every":   func(v value) { step.Every = v.duration(shortest, s.Duration) },
		"percent": func(v value) { step.Percent = int(v.integer(1, 100)) },
		"points":  func(v value) { step.Points = v.someOf(points) },
		"times":   func(v value) { step.Times = int(v.integer(1, maxTimes)) },
		"weights": func(v value) { step.Weights = s.weights(v) },
	}
	for name, v := range f {
		if r, known := read[name]; known {
			r(v)
		}
	}
	if v, given := f["node"]; given {
		step.Node = s.nodeOf(v, step.Region)
	}
	if v, given := f["key"]; given && step.Limit != "" {
		step.Key = s.keyOf(v, step.Limit)
	}
	if v, given := f["by"]; given && step.Do == "clock" && step.By == 0 {
		v.fail("this moves no clock", "write by how much, such as 2s or -500ms")
	}
	if v, given := f["times"]; given && step.Points == nil {
		v.fail("times is for points", "add points: [before-debit, ...], or remove it")
	}
	if v, given := f["and"]; given && step.Between == nil {
		v.fail("and is given without between", "name the regions between which and those it is")
	}
	if step.between() {
		step.complete(regions)
		if !step.somewhere() {
			f["do"].fail(fmt.Sprintf("there is no way between %s and %s", strings.Join(step.Between, ", "), cmp.Or(strings.Join(step.And, ", "), "no other region")), "name regions of which two are different")
		}
	}
	if v, given := f["every"]; given && step.Every > step.For {
		v.fail("every is longer than for", "cut and heal at least once in the time for")
	}
	if len(step.Points) > 0 {
		step.Node, step.Times = max(step.Node, 1), max(step.Times, 1)
	}
}

// complete names the regions that a step is about where the file leaves them out.
func (s *Step) complete(regions []string) {
	if s.Between == nil {
		s.Between, s.And = regions, regions
	}
	if s.And == nil {
		s.And = slices.DeleteFunc(slices.Clone(regions), func(r string) bool { return slices.Contains(s.Between, r) })
	}
}

// somewhere says whether there is a way that the step is about.
func (s *Step) somewhere() bool {
	return slices.ContainsFunc(s.Between, func(from string) bool {
		return slices.ContainsFunc(s.And, func(to string) bool { return from != to })
	})
}

func (s *Scenario) nodeOf(v value, region string) int {
	most := MaxNodes
	if r := s.region(region); r != nil {
		most = r.Nodes
	}
	return int(v.integer(1, int64(most)))
}

func (s *Scenario) weights(v value) map[string]int64 {
	f, _, ok := v.mapping("write weights like {us: 1, eu: 3}")
	if !ok {
		return nil
	}
	weights := map[string]int64{}
	for name, w := range f {
		if s.region(name) == nil {
			v.reader.fail(w.key, w.path, "no such region", "choose "+orNone(s.regionNames()))
		}
		weights[name] = w.integer(1, policy.MaxWeight)
	}
	return weights
}

func (s *Scenario) readExpectations(v value) {
	items, ok := v.list("write a list of {that: ceiling}")
	if ok && len(items) == 0 {
		v.fail("nothing is expected", "add at least {that: ceiling}")
	}
	for _, item := range items {
		that, f, ok := item.chosen("that", expectations)
		if !ok {
			continue
		}
		e := Expectation{That: that, To: s.Duration, pos: item.pos()}
		s.readExpectation(&e, f)
		s.Expect = append(s.Expect, e)
		s.checkExpectation(item, e)
	}
}

func (s *Scenario) readExpectation(e *Expectation, f map[string]value) {
	read := map[string]func(v value){
		"limit":    func(v value) { e.Limit = v.oneOf(s.limitNames()) },
		"region":   func(v value) { e.Region = v.oneOf(s.regionNames()) },
		"from":     func(v value) { e.From = v.duration(0, s.Duration) },
		"to":       func(v value) { e.To = v.duration(0, s.Duration) },
		"after":    func(v value) { e.After = v.duration(0, s.Duration) },
		"within":   func(v value) { e.Within = v.duration(time.Millisecond, s.Duration) },
		"at-least": func(v value) { e.AtLeast = v.percentage() },
		"percent":  func(v value) { e.Percent = v.integer(1, 100) },
		"above":    func(v value) { e.Above = v.integer(1, policy.MaxLimit) },
		"despite":  func(v value) { e.Despite = s.mishaps(v) },
	}
	for name, v := range f {
		if r, known := read[name]; known {
			r(v)
		}
	}
	if v, given := f["node"]; given {
		e.Node = s.nodeOf(v, e.Region)
	}
	if v, given := f["key"]; given {
		if e.Limit == "" {
			v.fail("a key of which limit?", "add limit")
			return
		}
		e.Key = s.keyOf(v, e.Limit)
	}
	if e.To <= e.From {
		f["that"].fail(fmt.Sprintf("the span from %s to %s is empty", e.From, e.To), "let it end after it begins")
	}
}

// percentage reads 95 or 95%.
func (v value) percentage() int64 {
	text, ok := v.text("write a whole number of percent, like 95%")
	if !ok {
		return 0
	}
	if n := len(text); n > 1 && text[n-1] == '%' {
		text = text[:n-1]
	}
	for n := range int64(101) {
		if fmt.Sprint(n) == text {
			return n
		}
	}
	v.fail(fmt.Sprintf("%.40q is no percentage", text), "write a whole number of percent, like 95%")
	return 0
}

func (s *Scenario) mishaps(v value) []Mishap {
	items, _ := v.list("write a list of {cause, when, region}, as quotad limits bound prints them")
	var all []Mishap
	for _, item := range items {
		f, ok := item.fields([]string{"cause", "when", "region"}, nil)
		if !ok {
			continue
		}
		m := Mishap{Region: f["region"].oneOf(s.regionNames())}
		m.Cause, _ = f["cause"].text("write a cause as quotad limits bound prints it")
		m.When, _ = f["when"].text("write when as quotad limits bound prints it")
		all = append(all, m)
	}
	return all
}

// checkExpectation checks that what is expected is of one bucket, and can be
// judged.
func (s *Scenario) checkExpectation(v value, e Expectation) {
	if !slices.Contains(expectations[e.That].optional, "limit") {
		return
	}
	buckets := e.buckets(s.Watched())
	switch {
	case len(buckets) == 0:
		v.fail("there is no load on this", "name a limit and a key that there is load on")
	case len(buckets) > 1 && e.That != "ceiling":
		v.fail("there is load on several limits or keys", "add limit, and key, to say which one")
	case e.That == "split" && buckets[0].Units < 2*int64(len(s.Regions)):
		v.fail("the limit has no fixed split: it is less than two for each region, and all of it is entitled to one region", "choose a higher limit")
	case e.That == "split" && buckets[0].Algorithm != "fixed_window":
		v.fail("only the windows of a fixed_window can be told apart", "choose a limit with algorithm: fixed_window")
	}
	if e.That == "ceiling" && e.Above > 0 && len(e.Despite) > 0 {
		v.fail("above and despite both say how much is forgiven", "keep one of the two")
	}
}
