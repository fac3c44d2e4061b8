package envoyconfig

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/strictyaml"
	"github.com/quotad/quotad/region/front/authz"
)

// wait is the timeout of the filter in configuration.yaml: quotad decides within it, or not at all.
const wait = time.Second

//go:embed configuration.yaml
var text string

// Sources are what a configuration is written from.
type Sources struct {
	Document *policy.Document
	Mapping  *authz.Mapping
	Domain   string
	// DocumentFile and MappingFile are the names of the files, for people.
	DocumentFile, MappingFile string
}

// Write returns a configuration of Envoy, and for people what of the document it leaves out. The
// error names all that Envoy cannot do, as strictyaml.Errors if it is of one of the files.
func Write(s Sources) (yaml string, leftOut []string, err error) {
	needs := needsOf(s.Document, s.Domain)
	rules := s.Mapping.Describe()
	if err := s.check(needs, rules); err != nil {
		return "", nil, err
	}
	lists, unmet, err := listsOf(rules, s.Domain, needs)
	if err != nil {
		return "", nil, err
	}
	if len(lists) == 0 {
		return "", nil, fmt.Errorf("no rule of %s makes what a limit of domain %q needs, such as %s for %s; "+
			"add these descriptors to a rule", s.MappingFile, s.Domain, words(needs[0].entries), needs[0].of)
	}
	if err := errors.Join(checkNumber(lists, rules), s.checkCounts(lists)); err != nil {
		return "", nil, err
	}
	for _, n := range unmet {
		leftOut = append(leftOut, fmt.Sprintf("%s of %s: no rule of %s makes descriptors %s in domain %s; "+
			"add a rule if Envoy's requests count for it", n.of, s.DocumentFile, s.MappingFile, words(n.entries), s.Domain))
	}
	reached := func(b bound) bool {
		return !slices.ContainsFunc(unmet, func(n need) bool { return n.of == b.of && same(n.entries, b.entries) })
	}
	return strings.NewReplacer(
		"DOCUMENT", s.DocumentFile, "MAPPING", s.MappingFile, "DOMAIN", quoted(s.Domain),
		indent+"LISTS\n", written(lists),
		indent+"BOUNDS\n", writtenBounds(boundsOf(s.Document, s.Domain, wait), reached),
	).Replace(text), leftOut, nil
}

// words returns the names of entries.
func words(entries []policy.Entry) string {
	var names []string
	for _, e := range entries {
		names = append(names, e.String())
	}
	return strings.Join(names, ", ")
}

// check returns what cannot be written at all.
func (s *Sources) check(needs []need, rules []authz.Rule) error {
	if len(needs) == 0 {
		return fmt.Errorf("%s has no limit of domain %q, so that Envoy would ask in vain; choose one of its domains: %s",
			s.DocumentFile, s.Domain, strings.Join(domainsOf(s.Document), ", "))
	}
	var wrong strictyaml.Errors
	others, all := []string{}, false
	for _, r := range rules {
		others = append(others, r.Domain)
		wrong = append(wrong, checkConditions(r)...)
		if r.Domain == s.Domain {
			wrong = append(wrong, checkDescriptors(r)...)
		}
		all = all || len(conditionsOf(r)) == 0
	}
	if slices.Sort(others); !slices.Contains(others, s.Domain) {
		return fmt.Errorf("%s has no rule for domain %q, so that Envoy would send nothing; "+
			"add a rule, or choose one of its domains: %s", s.MappingFile, s.Domain, strings.Join(slices.Compact(others), ", "))
	}
	if last := rules[len(rules)-1]; s.Mapping.DenyOthers && !all {
		wrong = append(wrong, &strictyaml.Error{Pos: last.Pos, Path: "on_no_rule",
			Problem: "Envoy passes requests that no rule is for, and cannot deny them",
			Mend:    "write on_no_rule: allow, or end with a rule without path, methods and host"})
	}
	if len(wrong) > 0 {
		return wrong
	}
	return nil
}

// domainsOf returns the domains that have limits, sorted.
func domainsOf(d *policy.Document) (all []string) {
	for _, l := range d.Limits {
		all = append(all, l.Domain)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// maxLists is how many descriptors of one request quotad takes. It refuses a request with more, and
// Envoy lets pass what is refused so.
const maxLists = 16

// checkNumber refuses rules whose requests may have more lists than quotad takes. The lists for the
// values of one descriptor are one, for a request has one of them.
func checkNumber(lists []list, rules []authz.Rule) error {
	for _, r := range rules {
		var different [][]string
		for _, l := range lists {
			names := namesOf(l.of.entries)
			if overlap(r, l.rule) && !slices.ContainsFunc(different, func(d []string) bool { return slices.Equal(d, names) }) {
				different = append(different, names)
			}
		}
		if len(different) > maxLists {
			return strictyaml.Errors{{Pos: r.Pos, Path: r.Field, Problem: fmt.Sprintf(
				"its requests have up to %d lists, and quotad takes %d", len(different), maxLists),
				Mend: "have the rule make fewer descriptors, or the limits need fewer combinations of them"}}
		}
	}
	return nil
}

// checkCounts refuses limits that would count a request otherwise in lists than in the one set of
// descriptors that /v1/authz makes of it. A limit with a key applies to every list that has the key.
func (s *Sources) checkCounts(lists []list) error {
	var wrong strictyaml.Errors
	for i := range s.Document.Limits {
		l := &s.Document.Limits[i]
		if l.Domain != s.Domain || l.Entries != nil {
			continue
		}
		if problem := s.counts(l, lists); problem != "" {
			wrong = append(wrong, &strictyaml.Error{Pos: l.Pos, Path: fmt.Sprintf("limits[%d]", i), Problem: problem,
				Mend: "write entries in place of key and match: such a limit is for one list alone"})
		}
	}
	if len(wrong) > 0 {
		return wrong
	}
	return nil
}

// counts returns how a limit with a key would count otherwise, or an empty text.
func (s *Sources) counts(l *policy.Limit, lists []list) string {
	own := entriesOf(l)
	if i := slices.IndexFunc(s.Document.Exempt, func(e policy.Exemption) bool { return e.Domain == s.Domain }); i >= 0 {
		return fmt.Sprintf("in Envoy's lists it would count what exempt[%d] exempts", i)
	}
	for i := range s.Document.Limits {
		o := &s.Document.Limits[i]
		if o.Domain == l.Domain && o.Name == l.Name && !slices.Equal(namesOf(own), namesOf(entriesOf(o))) &&
			sends(lists, own) && sends(lists, entriesOf(o)) {
			return "in Envoy's lists two terms of it would count one request"
		}
	}
	if !s.Document.Domain(s.Domain).Apart() {
		return "" // the bucket is charged once
	}
	for _, other := range lists {
		if o := namesOf(other.of.entries); !slices.Equal(o, namesOf(own)) && has(o, namesOf(own)) {
			return "each list is decided apart, and it would count a request twice: for " + other.of.of + " as well"
		}
	}
	return ""
}

// sends reports whether there is a list of some entries.
func sends(lists []list, entries []policy.Entry) bool {
	return slices.ContainsFunc(lists, func(l list) bool {
		return slices.Equal(namesOf(l.of.entries), namesOf(entries))
	})
}

// namesOf returns the names of entries, sorted.
func namesOf(entries []policy.Entry) (all []string) {
	for _, e := range entries {
		all = append(all, e.Name)
	}
	slices.Sort(all)
	return all
}

// has reports whether names have all of some others.
func has(names, others []string) bool {
	return !slices.ContainsFunc(others, func(o string) bool { return !slices.Contains(names, o) })
}
