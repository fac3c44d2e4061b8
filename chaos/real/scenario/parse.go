package scenario

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/strictyaml"
)

// The ranges of values in a scenario.
const (
	MaxBytes    = 16 << 10
	MaxDuration = 10 * time.Minute
	MaxNodes    = 20
	MaxRate     = 20_000 // units a second, of one load
	MaxRequests = 1_000_000
	MaxEnvoys   = 20 // of a region
	maxRow      = 1000
	maxCost     = 1_000_000
	maxTimes    = 1000
)

var nameForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// fileKind describes scenario files to strictyaml.
var fileKind = strictyaml.Kind{
	MaxBytes: MaxBytes,
	TooLarge: "check the path: a scenario has some thirty lines",
	Empty:    "write a scenario; quotad chaos run lists some to start from",
	TooDeep:  "a scenario needs only its fields, each a list of {name: value}",
}

// Parse parses and checks a scenario. The filename is used only in positions. The error is a
// [strictyaml.Errors] with all mistakes, by position.
func Parse(filename string, src []byte) (*Scenario, error) {
	root, err := strictyaml.Read(filename, src, fileKind)
	if err != nil {
		return nil, err
	}
	s := &Scenario{}
	s.read(root, string(src))
	if err := root.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

// fields reads a mapping with required and optional fields.
func fields(v strictyaml.Value, required, optional []string) (_ strictyaml.Object, ok bool) {
	known := slices.Concat(required, optional)
	o, ok := v.Object("write its fields: "+strings.Join(known, ", "), known)
	if !ok {
		return o, false
	}
	for _, name := range required {
		_, given := o.Required(name, "add "+name)
		ok = ok && given
	}
	return o, ok
}

// read reads the whole file. Parts that name regions and limits are read after these.
func (s *Scenario) read(root strictyaml.Value, src string) {
	required := []string{"name", "about", "duration", "regions", "limits", "load", "expect"}
	f, ok := fields(root, required, []string{"rows", "added", "steps"})
	if !ok {
		return
	}
	s.Name, _ = f.At("name").Plain("write a name like full-split")
	if !nameForm.MatchString(s.Name) || len(s.Name) > 60 {
		f.At("name").Fail(fmt.Sprintf("%.70q is no name of a scenario", s.Name),
			"write small letters, digits and dashes, like full-split")
	}
	s.About, _ = f.At("about").Plain("say in a sentence or two what happens and what is expected")
	s.Duration = f.At("duration").Duration(time.Second, MaxDuration)
	if rows, given := f.Field("rows"); given {
		items, _ := rows.List("write a list of numbers: [1, 8]")
		for _, item := range items {
			s.Rows = append(s.Rows, int(item.Integer(1, maxRow)))
		}
	}
	s.readRegions(f.At("regions"))
	if root.Failures() > 0 || !s.readLimits(f, src) {
		return // otherwise unknown names would be reported as well
	}
	s.readLoad(f.At("load"))
	if given, ok := f.Field("steps"); ok {
		s.readSteps(given)
	}
	if n := s.maxRequests(); n > MaxRequests {
		f.At("load").Fail(fmt.Sprintf("up to %d requests: more than %d cannot be kept", n,
			MaxRequests), "lower the rates, raise the costs, or shorten the scenario")
	}
	s.readExpectations(f.At("expect"))
}

func (s *Scenario) readRegions(v strictyaml.Value) {
	const mend = "name at least two, each with its weight: us: {weight: 1}"
	entries, ok := v.Entries(mend)
	if !ok {
		return
	}
	if len(entries) < 2 || len(entries) > 20 {
		v.Fail(fmt.Sprintf("%d regions", len(entries)), "name 2 to 20")
	}
	for _, e := range entries {
		r := Region{Name: e.Name, Nodes: 1}
		if f, ok := fields(e.Value, []string{"weight"}, []string{"nodes", "envoys"}); ok {
			r.Weight = f.At("weight").Integer(1, policy.MaxWeight)
			r.Nodes = strictyaml.Optional(f, "nodes", 1, strictyaml.Whole[int](1, MaxNodes))
			r.Envoys = strictyaml.Optional(f, "envoys", 0, strictyaml.Whole[int](1, MaxEnvoys))
		}
		s.Regions = append(s.Regions, r)
	}
}

// readLimits keeps the entries as they are written, after checking them in their place: nodes get
// them as text.
func (s *Scenario) readLimits(f strictyaml.Object, src string) bool {
	file := f.Pos().File
	var text [2]string
	for i, name := range []string{"limits", "added"} {
		v, given := f.Field(name)
		if !given {
			continue
		}
		line := v.KeyPos().Line
		block := blockAt(src, line)
		document := strings.Repeat("\n", line-1) + strings.Replace(block, name+":", "limits:", 1) +
			s.head(1, nil)
		d, err := policy.Parse(file, []byte(document))
		if problems := strictyaml.Errors(nil); errors.As(err, &problems) {
			v.Add(problems)
			return false
		}
		if text[i] = block; i == 0 {
			s.document = d
		} else {
			_, text[i], _ = strings.Cut(block, "\n")
		}
	}
	s.limits, s.added = text[0], text[1]
	if _, err := policy.Parse(file, []byte(s.Document(2, nil))); err != nil {
		f.At("added").Fail("together with limits it is no valid document: "+firstLine(err),
			"write both as lists with the same indentation, and no name twice")
		return false
	}
	return true
}

// blockAt returns all lines of a field: from its line, counted from 1, to the next line that begins
// with a name.
func blockAt(src string, line int) string {
	lines := strings.SplitAfter(strings.TrimSuffix(src, "\n")+"\n", "\n")
	end := line
	for end < len(lines) && (lines[end] == "" || strings.ContainsAny(lines[end][:1], " -#\r\n]}")) {
		end++
	}
	return strings.Join(lines[line-1:end], "")
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func (s *Scenario) readLoad(v strictyaml.Value) {
	items, ok := v.List("write a list of {region, limit, key, rate}")
	if ok && len(items) == 0 {
		v.Fail("nothing is asked for",
			"add at least {region: ..., limit: ..., key: ..., rate: ...}")
	}
	matcher := s.document.Compile()
	for _, item := range items {
		f, ok := fields(item, []string{"region", "limit", "key", "rate"},
			[]string{"cost", "from", "to", "envoys"})
		if !ok {
			continue
		}
		l := Load{Region: strictyaml.OneOf(f.At("region"), s.regionNames()...),
			Limit: strictyaml.OneOf(f.At("limit"), s.limitNames()...), Rate: f.At("rate").Integer(0,
				MaxRate), Cost: 1, To: s.Duration}
		l.Cost = strictyaml.Optional(f, "cost", 1, strictyaml.Whole[int64](1, maxCost))
		if at, given := f.Field("from"); given {
			l.From = at.Duration(0, s.Duration)
		}
		if at, given := f.Field("to"); given {
			l.To = at.Duration(l.From, s.Duration)
		}
		if l.Limit == "" {
			continue
		}
		if l.Key = s.keyOf(f.At("key"), l.Limit); l.Key == nil {
			continue
		}
		if some, given := f.Field("envoys"); given {
			l.Envoys = s.envoysOf(some, l)
		}
		q := s.question(l)
		if all := matcher.Append(nil, q.Domain, q.Descriptors); len(all) != 1 ||
			all[0].Name != l.Limit {
			item.Fail(fmt.Sprintf("this request meets %d limits", len(all)),
				"give each limit with load a domain or a key of its own: what is judged must be decided by one limit alone")
		}
		s.Load = append(s.Load, l)
	}
}

// envoysOf reads the Envoys of a load.
func (s *Scenario) envoysOf(v strictyaml.Value, l Load) (all []int) {
	r := s.region(l.Region)
	switch {
	case r == nil:
		return nil
	case r.Envoys == 0:
		v.Fail(l.Region+" has no Envoys", "write envoys: 4 to the region")
		return nil
	case s.limit(l.Limit).Assign == nil:
		v.Fail("of "+l.Limit+" Envoys are assigned nothing", "add assign: {} to the limit")
		return nil
	case l.Cost != 1:
		v.Fail("a request costs 1 at an Envoy", "remove cost")
		return nil
	}
	items, ok := v.List("write the numbers of Envoys: [1, 2]")
	if ok && len(items) == 0 {
		v.Fail("the list is empty", "write the numbers of Envoys: [1, 2]")
	}
	for _, item := range items {
		n := int(item.Integer(1, int64(r.Envoys)))
		if slices.Contains(all, n) {
			item.Fail("this Envoy is given twice", "keep one of the two")
		}
		all = append(all, n)
	}
	return all
}

// maxRequests returns the number of requests that all loads may send, each at its highest rate.
func (s *Scenario) maxRequests() (n int64) {
	for _, l := range s.Load {
		rate, to := l.Rate, l.To
		for _, step := range s.Steps {
			if step.Do == "load" && step.changes(l) {
				rate, to = max(rate, step.Rate), s.Duration
			}
		}
		n += rate * (to - l.From).Milliseconds() / 1000 / l.Cost
	}
	return n
}

// keyOf reads the key of a limit: a plain value, or a list if the key has several names.
func (s *Scenario) keyOf(v strictyaml.Value, limit string) []string {
	names := s.limit(limit).Key
	mend := fmt.Sprintf("give a value for %s", strings.Join(names, ", "))
	parts := []strictyaml.Value{v}
	if len(names) > 1 {
		var ok bool
		if parts, ok = v.List(mend); !ok {
			return nil
		}
	}
	if len(parts) != len(names) {
		v.Fail(fmt.Sprintf("%d values for a key of %d", len(parts), len(names)), mend)
		return nil
	}
	key := make([]string, len(parts))
	for i, p := range parts {
		text, ok := p.Plain(mend)
		if !ok {
			return nil
		}
		key[i] = text
	}
	return key
}
