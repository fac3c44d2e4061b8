package envoyimport

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/strictyaml"
)

// unit is a unit of time.
type unit struct {
	name   string
	length string // as a document writes it
	period string // the window of the calendar, if there is one
}

// units have the lengths that envoyproxy/ratelimit gives them.
var units = []unit{
	{"second", "1s", ""}, {"minute", "1m", ""}, {"hour", "1h", ""}, {"day", "24h", "day"},
	{"week", "168h", "week"}, {"month", "720h", "month"}, {"year", "8760h", "year"},
}

func unitNames() []string {
	var all []string
	for _, u := range units {
		all = append(all, u.name)
	}
	return all
}

// readLimit reads a rate_limit.
func (r *reader) readLimit(f strictyaml.Value) *rateLimit {
	l := &rateLimit{at: f}
	o, ok := r.object(f, "write unit and requests_per_unit, or unlimited: true", limitFields)
	if !ok {
		return l
	}
	if f, ok := field(o, "unlimited"); ok {
		l.unlimited = f.Bool()
	}
	if f, ok := field(o, "name"); ok {
		l.name = readName(f)
	}
	if f, ok := field(o, "replaces"); ok {
		l.replaces = r.readReplaces(f, l.name)
	}
	if l.unlimited {
		r.checkUnlimited(o, l)
		return l
	}
	l.unit, l.requests = readUnit(o), r.readRequests(o)
	return l
}

// checkUnlimited checks what stands beside unlimited: true.
func (r *reader) checkUnlimited(o strictyaml.Object, l *rateLimit) {
	if f, ok := field(o, "unit"); ok {
		f.Fail("what is unlimited has no unit", "remove unit, or unlimited")
	}
	for _, name := range []string{"requests_per_unit", "name"} {
		if f, ok := field(o, name); ok {
			r.warn(f, "has no effect on what is unlimited", "remove it, or unlimited")
		}
	}
}

// readUnit reads a unit, whose letters may be of either case.
func readUnit(o strictyaml.Object) string {
	f, ok := o.Required("unit", "write one of "+strings.Join(unitNames(), ", "))
	if !ok {
		return ""
	}
	text, _ := f.IsText()
	name := strings.ToLower(text)
	if !slices.Contains(unitNames(), name) {
		f.Fail(f.Describe()+" is not a unit", strictyaml.DidYouMean(name, unitNames()))
	}
	return name
}

// readRequests reads how many requests are allowed. envoyproxy/ratelimit takes a missing number as
// 0. 0 denies everything, which becomes an exemption that does.
func (r *reader) readRequests(o strictyaml.Object) int64 {
	f, ok := field(o, "requests_per_unit")
	if !ok {
		r.warn(o.Value, "no requests_per_unit: everything is denied", "write how many requests are allowed, or unlimited: true")
		return 0
	}
	return f.Integer(0, math.MaxUint32)
}

func readName(f strictyaml.Value) string {
	name, _ := f.Plain("write the name that other limits replace")
	if len(name) > policy.MaxAliasBytes {
		f.Fail(fmt.Sprintf("%d bytes long", len(name)),
			fmt.Sprintf("write at most %d bytes", policy.MaxAliasBytes))
	}
	return name
}

// readReplaces reads the names of the limits that one replaces, each once.
func (r *reader) readReplaces(f strictyaml.Value, own string) []string {
	items, ok := f.List("list the names of limits, such as [{name: per_user}]")
	if !ok {
		return nil
	}
	var all []string
	for _, item := range items {
		o, ok := r.object(item, "write {name: NAME}", []string{"name"})
		if !ok {
			continue
		}
		f, ok := field(o, "name")
		if !ok {
			item.Fail("no name", "write {name: NAME}")
			continue
		}
		name := readName(f)
		switch {
		case name == "":
			f.Fail("empty", "name a limit, or remove the entry")
		case name == own:
			f.Fail("a limit cannot replace itself", "name another one")
		case !slices.Contains(all, name):
			all = append(all, name)
		}
	}
	if len(all) > policy.MaxReplaces {
		f.Fail(fmt.Sprintf("%d names", len(all)),
			fmt.Sprintf("a limit replaces at most %d", policy.MaxReplaces))
	}
	return all
}
