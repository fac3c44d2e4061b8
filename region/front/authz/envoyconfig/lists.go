package envoyconfig

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/strictyaml"
	"github.com/quotad/quotad/region/front/authz"
)

// need is what something of the document needs of a request: entries in their order. A value that
// is a beginning is needed as such.
type need struct {
	entries []policy.Entry
	of      string // "limit login", for people
}

// needsOf returns what the limits and exemptions of a domain need, in their order.
func needsOf(d *policy.Document, domain string) (all []need) {
	for i := range d.Limits {
		if l := &d.Limits[i]; l.Domain == domain {
			all = append(all, need{arranged(d, l), "limit " + l.Name})
		}
	}
	for _, e := range d.Exempt {
		if e.Domain == domain {
			all = append(all, need{e.Entries, "an exemption"})
		}
	}
	return all
}

// entriesOf returns what a limit needs. One with a key and conditions takes them in any order: the
// conditions come first, as in a limit with entries.
func entriesOf(l *policy.Limit) []policy.Entry {
	if l.Entries != nil {
		return l.Entries
	}
	var all []policy.Entry
	for _, c := range l.Match {
		all = append(all, policy.Entry{Name: c.Name, Value: c.Value})
	}
	for _, name := range l.Key {
		if !slices.ContainsFunc(l.Match, func(c policy.Condition) bool { return c.Name == name }) {
			all = append(all, policy.Entry{Name: name, AnyValue: true})
		}
	}
	return all
}

// arranged returns what a limit needs. One that takes its entries in any order has that of a limit
// that needs the same names, so that one list is for both.
func arranged(d *policy.Document, l *policy.Limit) []policy.Entry {
	own := entriesOf(l)
	if l.Entries != nil {
		return own
	}
	var first []policy.Entry
	for i := range d.Limits {
		o := &d.Limits[i]
		if all := entriesOf(o); o.Domain == l.Domain && slices.Equal(namesOf(all), namesOf(own)) &&
			(first == nil || o.Entries != nil) {
			if first = all; o.Entries != nil {
				break
			}
		}
	}
	place := func(e policy.Entry) int {
		return slices.IndexFunc(first, func(f policy.Entry) bool { return f.Name == e.Name })
	}
	slices.SortFunc(own, func(a, b policy.Entry) int { return place(a) - place(b) })
	return own
}

// list is what Envoy describes a request by, entry by entry, if it meets the conditions.
type list struct {
	actions    []action
	conditions []matcher // that one of the actions carries
	of         need
	rule       authz.Rule
}

// is reports whether two lists are the same, whatever their conditions.
func (l *list) is(other *list) bool {
	return slices.EqualFunc(l.actions, other.actions, func(a, b action) bool { return a.is(b) })
}

// listsOf returns the lists of a domain, in the order of the needs and then of the rules. unmet are
// the needs that no rule fills.
func listsOf(rules []authz.Rule, domain string, needs []need) (all []list, unmet []need, err error) {
	wrong := strictyaml.Errors{}
	for _, n := range needs {
		var made []list
		for _, r := range rules {
			if r.Domain == domain {
				made = append(made, listsFor(r, n)...)
			}
		}
		if len(made) == 0 {
			unmet = append(unmet, n)
		}
		kept, problems := settled(made, rules)
		wrong = append(wrong, problems...)
		for _, one := range kept {
			if !slices.ContainsFunc(all, func(l list) bool {
				return l.is(&one) && slices.EqualFunc(l.conditions, one.conditions, matcher.is)
			}) {
				all = append(all, one)
			}
		}
	}
	if len(wrong) > 0 {
		return nil, nil, once(wrong)
	}
	return all, unmet, nil
}

// once returns the problems without those that are there already.
func once(all strictyaml.Errors) (kept strictyaml.Errors) {
	for _, e := range all {
		if !slices.ContainsFunc(kept, func(k *strictyaml.Error) bool { return *k == *e }) {
			kept = append(kept, e)
		}
	}
	return kept
}

// listsFor returns the lists by which a rule fills a need: one for each value that an entry may have,
// if Envoy must be told of them one by one.
func listsFor(r authz.Rule, n need) []list {
	made := []list{{of: n, rule: r}}
	for _, e := range n.entries {
		var longer []list
		for _, l := range made {
			for _, a := range actionsFor(r, e) {
				one := l
				one.actions = append(slices.Clone(l.actions), a)
				longer = append(longer, one)
			}
		}
		made = longer
	}
	return made
}

// actionsFor returns the actions by which a rule makes an entry as it is needed: none if it does not.
func actionsFor(r authz.Rule, e policy.Entry) (all []action) {
	for _, d := range r.Made {
		if d.Name != e.Name {
			continue
		}
		for _, a := range actionsOf(d) {
			if a.value == "" || e.Fits(a.value) {
				all = append(all, a)
			}
		}
	}
	return all
}

// settled gives lists of one need the conditions of their rules. Of the same list of two rules, of
// which one is for all requests that the other is for, one is enough.
func settled(made []list, rules []authz.Rule) (kept []list, wrong strictyaml.Errors) {
	for i := range made {
		l := &made[i]
		if slices.ContainsFunc(made, func(o list) bool { return l.is(&o) && wider(o.rule, l.rule) }) {
			continue
		}
		if problem := l.before(made, rules); problem != nil {
			wrong = append(wrong, problem)
			continue
		}
		l.conditions = conditionsOf(l.rule)
		if len(l.conditions) > 0 && !slices.ContainsFunc(l.actions, action.carries) {
			wrong = append(wrong, &strictyaml.Error{Pos: l.rule.Pos, Path: l.rule.Field, Problem: fmt.Sprintf(
				"Envoy has conditions in entries with a fixed text alone, and %s needs none of this rule", l.of.of),
				Mend: "give the rule a descriptor such as request: {value: sign-in}, and the limit an entry for it"})
			continue
		}
		kept = append(kept, *l)
	}
	return kept, wrong
}

// before returns the problem that a rule that comes first for some requests of the list's does not
// make the list, or nil.
func (l *list) before(made []list, rules []authz.Rule) *strictyaml.Error {
	for _, r := range rules {
		if r.Field == l.rule.Field {
			return nil
		}
		if !overlap(r, l.rule) {
			continue
		}
		if slices.ContainsFunc(made, func(o list) bool { return o.rule.Field == r.Field && l.is(&o) }) && wider(l.rule, r) {
			continue
		}
		return &strictyaml.Error{Pos: r.Pos, Path: r.Field, Problem: fmt.Sprintf(
			"it comes first for requests that %s is for as well, and Envoy knows no order of rules: it counts them for %s, too",
			l.rule.Field, l.of.of), Mend: fmt.Sprintf("give it the same descriptors for that (%s) and a path below that of %s, "+
			"or give the two paths, hosts or methods of which no request has both", l.words(), l.rule.Field)}
	}
	return nil
}

// words returns the names of the list's entries.
func (l *list) words() string {
	var names []string
	for _, a := range l.actions {
		names = append(names, a.name)
	}
	return strings.Join(names, ", ")
}
