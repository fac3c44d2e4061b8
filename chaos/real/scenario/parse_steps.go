package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/strictyaml"
)

// chosen reads the word of a step or an expectation, and its fields.
func chosen(v strictyaml.Value, field string, table map[string]word, also ...string) (name string,
	f strictyaml.Object, ok bool) {
	words := slices.Sorted(maps.Keys(table))
	at, given := v.Peek(field)
	if !given {
		_, isMapping := v.Entries(fmt.Sprintf("write it like {%s: ...}", field))
		if isMapping {
			v.Fail(field+" is missing", fmt.Sprintf("add %s: and one of %s", field,
				strings.Join(words, ", ")))
		}
		return "", f, false
	}
	if name = strictyaml.OneOf(at, words...); name == "" {
		return "", f, false
	}
	w := table[name]
	f, ok = fields(v, append([]string{field}, slices.Concat(also, w.required)...), w.optional)
	return name, f, ok
}

// someOf reads a list of known words.
func someOf(v strictyaml.Value, known []string) []string {
	items, ok := v.List(fmt.Sprintf("write a list: [%s]", strings.Join(known, ", ")))
	if ok && len(items) == 0 {
		v.Fail("the list is empty", "name at least one, or remove the field")
	}
	var all []string
	for _, item := range items {
		word := strictyaml.OneOf(item, known...)
		if word != "" && slices.Contains(all, word) {
			item.Fail(word+" is given twice", "keep one of the two")
		}
		all = append(all, word)
	}
	return all
}

func (s *Scenario) readSteps(v strictyaml.Value) {
	items, _ := v.List("write a list of {at: 3s, do: ...}")
	for _, item := range items {
		do, f, ok := chosen(item, "do", steps, "at")
		if !ok {
			continue
		}
		step := Step{Do: do, pos: item.Pos(), At: f.At("at").Duration(0, s.Duration)}
		s.readStep(&step, f)
		if do == "load" && !slices.ContainsFunc(s.Load,
			func(l Load) bool { return step.changes(l) }) {
			item.Fail("there is no such load to change",
				"add one to load, with rate: 0 if it is to begin here")
		}
		s.Steps = append(s.Steps, step)
	}
	slices.SortStableFunc(s.Steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	s.checkRedis(v)
}

// checkRedis checks that no step concerns a Redis that a failover ended, and that only clock
// concerns an embedded Redis.
func (s *Scenario) checkRedis(v strictyaml.Value) {
	over, embedded := map[string]bool{}, map[string]bool{}
	for _, step := range s.Steps {
		embedded[step.Region] = embedded[step.Region] || step.Do == "clock"
	}
	for _, step := range s.Steps {
		if !strings.HasSuffix(step.Do, "-redis") {
			continue
		}
		if embedded[step.Region] {
			v.FailAt(step.pos, "the Redis of "+step.Region+
				" is an embedded one, for its clock is moved",
				"move the clock of another region, or let this one's Redis be")
		}
		if over[step.Region] {
			v.FailAt(step.pos, "the Redis of "+step.Region+
				" was failed over before, and only its copy is left",
				"let failover-redis be the last step about this Redis")
		}
		over[step.Region] = over[step.Region] || step.Do == "failover-redis"
	}
}

// changes reports whether a step with the word load concerns a load.
func (s Step) changes(l Load) bool {
	return s.Region == l.Region && s.Limit == l.Limit &&
		(s.Key == nil || slices.Equal(s.Key, l.Key))
}

// shortest is the minimum duration of anything that is done.
const shortest = 10 * time.Millisecond

// leastBy returns the minimum of the field by. It is negative for clock, which can also move back.
func leastBy(do string) time.Duration {
	if do == "clock" {
		return -time.Minute
	}
	return shortest
}

// readStep reads the fields that are present. The caller has checked that they are allowed.
func (s *Scenario) readStep(step *Step, f strictyaml.Object) {
	regions := s.regionNames()
	read := map[string]func(v strictyaml.Value){
		"between": func(v strictyaml.Value) { step.Between = someOf(v, regions) },
		"and":     func(v strictyaml.Value) { step.And = someOf(v, regions) },
		"one-way": func(v strictyaml.Value) { step.OneWay = v.Bool() },
		"only":    func(v strictyaml.Value) { step.Only = strictyaml.OneOf(v, "udp", "tcp") },
		"region":  func(v strictyaml.Value) { step.Region = strictyaml.OneOf(v, regions...) },
		"limit":   func(v strictyaml.Value) { step.Limit = strictyaml.OneOf(v, s.limitNames()...) },
		"rate":    func(v strictyaml.Value) { step.Rate = v.Integer(0, MaxRate) },
		"by":      func(v strictyaml.Value) { step.By = v.Duration(leastBy(step.Do), time.Minute) },
		"for":     func(v strictyaml.Value) { step.For = v.Duration(shortest, s.Duration) },
		"every":   func(v strictyaml.Value) { step.Every = v.Duration(shortest, s.Duration) },
		"percent": func(v strictyaml.Value) { step.Percent = int(v.Integer(1, 100)) },
		"points":  func(v strictyaml.Value) { step.Points = someOf(v, points) },
		"times":   func(v strictyaml.Value) { step.Times = int(v.Integer(1, maxTimes)) },
		"weights": func(v strictyaml.Value) { step.Weights = s.weights(v) },
	}
	for name, r := range read {
		if v, given := f.Field(name); given {
			r(v)
		}
	}
	if v, given := f.Field("node"); given {
		step.Node = s.nodeOf(v, step.Region)
	}
	if step.Do == "cut-envoys" {
		s.readEnvoys(step, f)
	}
	if v, given := f.Field("key"); given && step.Limit != "" {
		step.Key = s.keyOf(v, step.Limit)
	}
	if v, given := f.Field("by"); given && step.Do == "clock" && step.By == 0 {
		v.Fail("this moves no clock", "write by how much, such as 2s or -500ms")
	}
	if v, given := f.Field("times"); given && step.Points == nil {
		v.Fail("times is for points", "add points: [before-debit, ...], or remove it")
	}
	if v, given := f.Field("and"); given && step.Between == nil {
		v.Fail("and is given without between", "name the regions between which and those it is")
	}
	if step.between() {
		step.complete(regions)
		if !step.somewhere() {
			f.At("do").Fail(fmt.Sprintf("there is no way between %s and %s",
				strings.Join(step.Between, ", "), cmp.Or(strings.Join(step.And, ", "),
					"no other region")), "name regions of which two are different")
		}
	}
	if v, given := f.Field("every"); given && step.Every > step.For {
		v.Fail("every is longer than for", "cut and heal at least once in the time for")
	}
	if len(step.Points) > 0 {
		step.Node, step.Times = max(step.Node, 1), max(step.Times, 1)
	}
}

// readEnvoys reads which Envoys a step concerns.
func (s *Scenario) readEnvoys(step *Step, f strictyaml.Object) {
	r := s.region(step.Region)
	if r == nil {
		return
	}
	if r.Envoys == 0 {
		f.At("region").Fail(step.Region+" has no Envoys", "name a region that has some")
		return
	}
	if v, given := f.Field("envoy"); given {
		step.Envoy = int(v.Integer(1, int64(r.Envoys)))
	}
}

// complete fills in the regions that the file leaves out.
func (s *Step) complete(regions []string) {
	if s.Between == nil {
		s.Between, s.And = regions, regions
	}
	if s.And == nil {
		s.And = slices.DeleteFunc(slices.Clone(regions),
			func(r string) bool { return slices.Contains(s.Between, r) })
	}
}

// somewhere reports whether the step concerns any way.
func (s *Step) somewhere() bool {
	return slices.ContainsFunc(s.Between, func(from string) bool {
		return slices.ContainsFunc(s.And, func(to string) bool { return from != to })
	})
}

func (s *Scenario) nodeOf(v strictyaml.Value, region string) int {
	most := MaxNodes
	if r := s.region(region); r != nil {
		most = r.Nodes
	}
	return int(v.Integer(1, int64(most)))
}

func (s *Scenario) weights(v strictyaml.Value) map[string]int64 {
	entries, ok := v.Entries("write weights like {us: 1, eu: 3}")
	if !ok {
		return nil
	}
	weights := map[string]int64{}
	for _, e := range entries {
		if s.region(e.Name) == nil {
			e.Key.Fail("no such region", strictyaml.DidYouMean(e.Name, s.regionNames()))
		}
		weights[e.Name] = e.Value.Integer(1, policy.MaxWeight)
	}
	return weights
}

func (s *Scenario) readExpectations(v strictyaml.Value) {
	items, ok := v.List("write a list of {that: ceiling}")
	if ok && len(items) == 0 {
		v.Fail("nothing is expected", "add at least {that: ceiling}")
	}
	for _, item := range items {
		that, f, ok := chosen(item, "that", expectations)
		if !ok {
			continue
		}
		e := Expectation{That: that, To: s.Duration, pos: item.Pos()}
		s.readExpectation(&e, f)
		s.Expect = append(s.Expect, e)
		s.checkExpectation(item, e)
	}
}

func (s *Scenario) readExpectation(e *Expectation, f strictyaml.Object) {
	read := map[string]func(v strictyaml.Value){
		"limit":  func(v strictyaml.Value) { e.Limit = strictyaml.OneOf(v, s.limitNames()...) },
		"region": func(v strictyaml.Value) { e.Region = strictyaml.OneOf(v, s.regionNames()...) },
		"from":   func(v strictyaml.Value) { e.From = v.Duration(0, s.Duration) },
		"to":     func(v strictyaml.Value) { e.To = v.Duration(0, s.Duration) },
		"after":  func(v strictyaml.Value) { e.After = v.Duration(0, s.Duration) },
		"within": func(v strictyaml.Value) {
			e.Within = v.Duration(time.Millisecond, s.Duration)
		},
		"at-least": func(v strictyaml.Value) { e.AtLeast = percentage(v) },
		"percent":  func(v strictyaml.Value) { e.Percent = v.Integer(1, 100) },
		"above":    func(v strictyaml.Value) { e.Above = v.Integer(1, policy.MaxLimit) },
		"despite":  func(v strictyaml.Value) { e.Despite = s.mishaps(v) },
	}
	for name, r := range read {
		if v, given := f.Field(name); given {
			r(v)
		}
	}
	if v, given := f.Field("node"); given {
		e.Node = s.nodeOf(v, e.Region)
	}
	if v, given := f.Field("key"); given {
		if e.Limit == "" {
			v.Fail("a key of which limit?", "add limit")
			return
		}
		e.Key = s.keyOf(v, e.Limit)
	}
	if e.To <= e.From {
		f.At("that").Fail(fmt.Sprintf("the span from %s to %s is empty", e.From, e.To),
			"let it end after it begins")
	}
}

// percentage reads a percentage, such as 95 or 95%.
func percentage(v strictyaml.Value) int64 {
	text, ok := v.Plain("write a whole number of percent, like 95%")
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
	v.Fail(fmt.Sprintf("%.40q is no percentage", text), "write a whole number of percent, like 95%")
	return 0
}

func (s *Scenario) mishaps(v strictyaml.Value) []Mishap {
	items, _ := v.List("write a list of {cause, when, region}, as quotad limits bound prints them")
	var all []Mishap
	for _, item := range items {
		f, ok := fields(item, []string{"cause", "when", "region"}, nil)
		if !ok {
			continue
		}
		m := Mishap{Region: strictyaml.OneOf(f.At("region"), s.regionNames()...)}
		m.Cause, _ = f.At("cause").Plain("write a cause as quotad limits bound prints it")
		m.When, _ = f.At("when").Plain("write when as quotad limits bound prints it")
		all = append(all, m)
	}
	return all
}

// checkExpectation checks that an expectation concerns one bucket, and can be judged.
func (s *Scenario) checkExpectation(v strictyaml.Value, e Expectation) {
	if !slices.Contains(expectations[e.That].optional, "limit") {
		return
	}
	buckets := e.buckets(s.Watched())
	switch {
	case len(buckets) == 0:
		v.Fail("there is no load on this", "name a limit and a key that there is load on")
	case len(buckets) > 1 && e.That != "ceiling":
		v.Fail("there is load on several limits or keys", "add limit, and key, to say which one")
	case e.That == "split" && buckets[0].Units < 2*int64(len(s.Regions)):
		v.Fail("the limit has no fixed split: it is less than two for each region, and all of it is entitled to one region", "choose a higher limit")
	case e.That == "split" && buckets[0].Algorithm != "fixed_window":
		v.Fail("only the windows of a fixed_window can be told apart",
			"choose a limit with algorithm: fixed_window")
	}
	if e.That == "ceiling" && e.Above > 0 && len(e.Despite) > 0 {
		v.Fail("above and despite both say how much is forgiven", "keep one of the two")
	}
}
