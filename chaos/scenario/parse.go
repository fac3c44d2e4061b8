package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/strictyaml"
)

// The ranges of a scenario.
const (
	MaxBytes    = 16 << 10
	MaxDuration = 10 * time.Minute
	MaxNodes    = 20
	MaxRate     = 20_000 // units a second, of one load
	MaxRequests = 1_000_000
	maxRow      = 1000
	maxCost     = 1_000_000
	maxTimes    = 1000
)

var nameForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Parse reads and checks a scenario. The filename is for positions alone. The
// error is a [strictyaml.Errors] with everything that is wrong, by position.
func Parse(filename string, src []byte) (*Scenario, error) {
	r := &reader{file: filename}
	s := &Scenario{}
	if len(src) > MaxBytes {
		r.fail(nil, "", fmt.Sprintf("the file is larger than %d KiB", MaxBytes>>10), "check the path: a scenario has some thirty lines")
		return nil, r.errs
	}
	if root := r.parse(src); root != nil {
		s.read(value{r, root, nil, ""}, string(src))
	}
	if len(r.errs) > 0 {
		slices.SortStableFunc(r.errs, func(a, b *strictyaml.Error) int {
			return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
		})
		return nil, r.errs
	}
	return s, nil
}

// read reads the whole file. What names regions and limits is read after them.
func (s *Scenario) read(root value, src string) {
	f, ok := root.fields([]string{"name", "about", "duration", "regions", "limits", "load", "expect"}, []string{"rows", "added", "steps"})
	if !ok {
		return
	}
	s.Name, _ = f["name"].text("write a name like full-split")
	if !nameForm.MatchString(s.Name) || len(s.Name) > 60 {
		f["name"].fail(fmt.Sprintf("%.70q is no name of a scenario", s.Name), "write small letters, digits and dashes, like full-split")
	}
	s.About, _ = f["about"].text("say in a sentence or two what happens and what is expected")
	s.Duration = f["duration"].duration(time.Second, MaxDuration)
	if rows, given := f["rows"]; given {
		items, _ := rows.list("write a list of numbers: [1, 8]")
		for _, item := range items {
			s.Rows = append(s.Rows, int(item.integer(1, maxRow)))
		}
	}
	s.readRegions(f["regions"])
	if len(root.errs) > 0 || !s.readLimits(f, src) {
		return // names that are not known would be reported as well
	}
	s.readLoad(f["load"])
	if given, ok := f["steps"]; ok {
		s.readSteps(given)
	}
	if n := s.mostRequests(); n > MaxRequests {
		f["load"].fail(fmt.Sprintf("up to %d requests: more than %d cannot be kept", n, MaxRequests), "lower the rates, raise the costs, or shorten the scenario")
	}
	s.readExpectations(f["expect"])
}

func (s *Scenario) readRegions(v value) {
	const mend = "name at least two, each with its weight: us: {weight: 1}"
	entries, order, ok := v.mapping(mend)
	if !ok {
		return
	}
	if len(order) < 2 || len(order) > 20 {
		v.fail(fmt.Sprintf("%d regions", len(order)), "name 2 to 20")
	}
	for _, name := range order {
		r := Region{Name: name, Nodes: 1}
		if f, ok := entries[name].fields([]string{"weight"}, []string{"nodes"}); ok {
			r.Weight = f["weight"].integer(1, policy.MaxWeight)
			if n, given := f["nodes"]; given {
				r.Nodes = int(n.integer(1, MaxNodes))
			}
		}
		s.Regions = append(s.Regions, r)
	}
}

// readLimits takes the entries as they are written: they are checked where they
// stand, and given to nodes.
func (s *Scenario) readLimits(f map[string]value, src string) bool {
	r := f["limits"].reader
	var text [2]string
	for i, name := range []string{"limits", "added"} {
		v, given := f[name]
		if !given {
			continue
		}
		line := v.key.Position.Line
		block := blockAt(src, line)
		document := strings.Repeat("\n", line-1) + strings.Replace(block, name+":", "limits:", 1) + s.head(1, nil)
		d, err := policy.Parse(r.file, []byte(document))
		if !r.take(err) {
			return false
		}
		if text[i] = block; i == 0 {
			s.document = d
		} else {
			_, text[i], _ = strings.Cut(block, "\n")
		}
	}
	s.limits, s.added = text[0], text[1]
	if _, err := policy.Parse(r.file, []byte(s.Document(2, nil))); err != nil {
		f["added"].fail("together with limits it is no valid document: "+firstLine(err), "write both as lists with the same indentation, and no name twice")
		return false
	}
	return true
}

// take notes the problems of a limits document.
func (r *reader) take(err error) bool {
	var problems strictyaml.Errors
	if !errors.As(err, &problems) {
		return err == nil
	}
	r.errs = append(r.errs, problems...)
	return false
}

// blockAt is a field of the file with all its lines: from its line, counted from
// 1, to the next that begins with a name.
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

func (s *Scenario) readLoad(v value) {
	items, ok := v.list("write a list of {region, limit, key, rate}")
	if ok && len(items) == 0 {
		v.fail("nothing is asked for", "add at least {region: ..., limit: ..., key: ..., rate: ...}")
	}
	matcher := s.document.Compile()
	for _, item := range items {
		f, ok := item.fields([]string{"region", "limit", "key", "rate"}, []string{"cost", "from", "to"})
		if !ok {
			continue
		}
		l := Load{Region: f["region"].oneOf(s.regionNames()), Limit: f["limit"].oneOf(s.limitNames()), Rate: f["rate"].integer(0, MaxRate), Cost: 1, To: s.Duration}
		if c, given := f["cost"]; given {
			l.Cost = c.integer(1, maxCost)
		}
		if at, given := f["from"]; given {
			l.From = at.duration(0, s.Duration)
		}
		if at, given := f["to"]; given {
			l.To = at.duration(l.From, s.Duration)
		}
		if l.Limit == "" {
			continue
		}
		if l.Key = s.keyOf(f["key"], l.Limit); l.Key == nil {
			continue
		}
		q := s.question(l)
		if all := matcher.Append(nil, q.Domain, q.Descriptors); len(all) != 1 || all[0].Name != l.Limit {
			item.fail(fmt.Sprintf("this request meets %d limits", len(all)), "give each limit with load a domain or a key of its own: what is judged must be decided by one limit alone")
		}
		s.Load = append(s.Load, l)
	}
}

// mostRequests is how many requests all loads may send, each at its highest rate.
func (s *Scenario) mostRequests() (n int64) {
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

// keyOf reads the key of a limit: a plain value, or a list for a key of several
// names.
func (s *Scenario) keyOf(v value, limit string) []string {
	names := s.limit(limit).Key
	mend := fmt.Sprintf("give a value for %s", strings.Join(names, ", "))
	parts := []value{v}
	if len(names) > 1 {
		var ok bool
		if parts, ok = v.list(mend); !ok {
			return nil
		}
	}
	if len(parts) != len(names) {
		v.fail(fmt.Sprintf("%d values for a key of %d", len(parts), len(names)), mend)
		return nil
	}
	key := make([]string, len(parts))
	for i, p := range parts {
		text, ok := p.text(mend)
		if !ok {
			return nil
		}
		key[i] = text
	}
	return key
}
