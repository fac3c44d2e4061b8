package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotad/quotad/policy/strictyaml"
)

// MaxEntries bounds the entries of one path.
const MaxEntries = MaxKeyNames

// Entry is one step of a path: what a limit with entries requires of the entry of a request's
// descriptor that stands at the same place. See [Limit.Entries].
type Entry struct {
	Name string
	// Value is the value that is required, or with Pattern a text in which each * stands for any
	// text, also for none. It is empty if AnyValue is set.
	Value    string
	AnyValue bool
	Pattern  bool
	// Shared says that all values that fit the pattern share one count. It needs Pattern.
	Shared bool
}

// NewEntry returns the entry for a value as a document has it: a pattern, if it has a *.
func NewEntry(name, value string) Entry {
	return Entry{Name: name, Value: value, Pattern: strings.Contains(value, "*")}
}

// String returns the entry as name, or as name=value.
func (e Entry) String() string {
	if e.AnyValue {
		return e.Name
	}
	return e.Name + "=" + e.Value
}

// Fits reports whether a value is as the entry requires.
func (e Entry) Fits(value string) bool {
	switch {
	case e.AnyValue:
		return true
	case e.Pattern:
		return fitsPattern(e.Value, value)
	}
	return value == e.Value
}

// Meets reports whether some descriptor is as two entries require.
func (e Entry) Meets(other Entry) bool {
	switch {
	case e.Name != other.Name:
		return false
	case e.AnyValue || other.AnyValue:
		return true
	case e.Pattern && other.Pattern:
		return patternsMeet(e.Value, other.Value)
	case e.Pattern:
		return e.Fits(other.Value)
	}
	return other.Fits(e.Value)
}

// fixed reports whether all requests that meet the entry count together as far as it goes.
func (e Entry) fixed() bool { return !e.AnyValue && (!e.Pattern || e.Shared) }

// counted returns what stands in a bucket's ID for a value that fits.
func (e Entry) counted(value string) string {
	if e.Shared {
		return e.Value
	}
	return value
}

// formatEntries returns a path as a person would write it.
func formatEntries(all []Entry) string {
	words := make([]string, len(all))
	for i, e := range all {
		words[i] = strconv.Quote(e.String())
	}
	return strings.Join(words, " > ")
}

// Occurrence returns the name of the n-th descriptor of a name in one list, counted from 1: the
// name itself, then name/2, name/3 and so on. So each descriptor of a list has a name of its own.
func Occurrence(name string, n int) string {
	if n < 2 {
		return name
	}
	return name + "/" + strconv.Itoa(n)
}

// isOccurrence reports whether a text is a name that [Occurrence] makes for an entry of a path.
func isOccurrence(text string) bool {
	if name, digit := text[:max(0, len(text)-2)], text[max(0, len(text)-2):]; digit >= "/2" && digit <= "/"+strconv.Itoa(MaxEntries) {
		return descriptorNames.holds(name) || descriptorNames.holds(text)
	}
	return descriptorNames.holds(text)
}

// occurrences returns the names that the entries of a path have in buckets.
func occurrences(all []Entry) []string {
	names := make([]string, len(all))
	for i, e := range all {
		n := 1
		for _, before := range all[:i] {
			if before.Name == e.Name {
				n++
			}
		}
		names[i] = Occurrence(e.Name, n)
	}
	return names
}

// setEntries gives a limit its path, and the key and conditions that follow from it. What requests
// share counts together, and is a condition. The other values make the key. A path of which
// everything is shared has its first entry as the key, too, for a key has at least one name.
func (l *Limit) setEntries(all []Entry) {
	l.Entries = all
	names := occurrences(all)
	for i, e := range all {
		if e.fixed() {
			l.Match = append(l.Match, Condition{names[i], e.Value})
		} else {
			l.Key, l.keyPlaces = append(l.Key, names[i]), append(l.keyPlaces, i)
		}
	}
	if len(l.Key) == 0 && len(names) > 0 {
		l.Key, l.keyPlaces = names[:1], []int{0}
	}
	slices.SortFunc(l.Match, func(a, b Condition) int { return strings.Compare(a.Name, b.Name) })
}

const mendEntries = "list the entries of the descriptor in their order, such as [{key: database, value: users}, {key: user}]"

var entryFields = []string{"key", "value", "shared"}

// readEntries reads a path.
func readEntries(f strictyaml.Value) []Entry {
	items, ok := f.List(mendEntries)
	if !ok {
		return nil
	}
	if len(items) == 0 {
		f.Fail("empty", mendEntries)
	}
	if len(items) > MaxEntries {
		f.Fail(fmt.Sprintf("%d entries", len(items)), fmt.Sprintf("use at most %d", MaxEntries))
	}
	all := make([]Entry, 0, len(items))
	for _, item := range items {
		all = append(all, readEntry(item))
	}
	names := occurrences(all)
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			items[i].Fail(fmt.Sprintf("%s is also the name of a repeated entry", name),
				"give one of the two another name")
		}
	}
	return all
}

func readEntry(f strictyaml.Value) Entry {
	e := Entry{AnyValue: true}
	o, ok := f.Object("write {key: NAME}, or {key: NAME, value: VALUE}", entryFields)
	if !ok {
		return e
	}
	e.Name = strictyaml.Needed(o, "key", "name the descriptor, as requests have it", descriptorNames.read)
	if f, ok := o.Field("value"); ok {
		e = NewEntry(e.Name, readValue(f))
	}
	if f, ok := o.Field("shared"); ok {
		if e.Shared = f.Bool(); e.Shared && !e.Pattern {
			f.Fail("only the values of a pattern can share a count",
				"write a value with a *, or remove shared")
		}
	}
	return e
}

// readValue reads the value of an entry.
func readValue(f strictyaml.Value) string {
	text, _ := f.Text("write the value that the descriptor must have, with * for any text")
	checkConditionText(f, text)
	if n := strings.Count(text, "*"); n > MaxStars {
		f.Fail(fmt.Sprintf("%d times *", n), fmt.Sprintf("use at most %d, or write the entries one by one", MaxStars))
	}
	return text
}

// Exemption says that no limit with a key applies to requests that have the descriptors of its
// entries, whatever else they have, and no limit with entries to a descriptor of Envoy's whose path
// they are. Such a request is always admitted as far as those go, or with Deny never.
type Exemption struct {
	Domain  string
	Entries []Entry
	// Unlimited says so to callers: that there is no limit, on purpose. Otherwise they are told
	// that no limit was found.
	Unlimited bool
	// Deny has every request denied that has such a descriptor.
	Deny bool
	// Window makes it a limit of 0 for those that are told of limits with their units: Envoy is told of
	// one whose windows have this length, counted from 1970. 0: nothing is told.
	Window time.Duration
	// Alias is as [Limit.Alias], of what has a Window. Empty: it has none.
	Alias string
	// Alternative is as [Limit.Alternative], of what has a Window and Deny.
	Alternative bool
	// Replaces is as [Limit.Replaces].
	Replaces []string
	// Metadata is as [Limit.Metadata], of what has a Window and no Deny.
	Metadata *Metadata
}

var exemptionFields = []string{"domain", "entries", "unlimited", "deny", "window", "alias", "alternative", "replaces", "metadata"}

func readExemptions(f strictyaml.Value) []Exemption {
	items, ok := f.List("list what is exempt, such as {domain: api, entries: [{key: plan, value: internal}]}")
	if !ok {
		return nil
	}
	all, paths := make([]Exemption, len(items)), map[string]bool{}
	for i, item := range items {
		o, ok := item.Object("write domain and entries", exemptionFields)
		if !ok {
			continue
		}
		all[i].Domain = strictyaml.Needed(o, "domain", "name the domain of the requests", domainNames.read)
		all[i].Entries = strictyaml.Needed(o, "entries", mendEntries, readEntries)
		all[i].Unlimited = strictyaml.Optional(o, "unlimited", false, strictyaml.Value.Bool)
		if f, ok := o.Field("deny"); ok {
			if all[i].Deny = f.Bool(); all[i].Deny && all[i].Unlimited {
				f.Fail("what is unlimited is not denied", "remove deny, or unlimited")
			}
		}
		all[i].readTold(o)
		if f, ok := o.Field("replaces"); ok {
			all[i].Replaces = readReplaces(f, all[i].Alias)
		}
		if path := all[i].path(); paths[path] {
			item.Fail(path+" is exempt already", "remove one")
		} else {
			paths[path] = true
		}
	}
	return all
}

// readTold reads what callers are told of an exemption, and how it takes part in denials.
func (e *Exemption) readTold(o strictyaml.Object) {
	if f, ok := o.Field("window"); ok {
		if e.Window = readWindow(f); e.Unlimited {
			f.Fail("what is unlimited is no limit of 0", "remove window, or unlimited")
		}
	}
	e.Alias = strictyaml.Optional(o, "alias", "", readAlias)
	e.Alternative = strictyaml.Optional(o, "alternative", false, strictyaml.Value.Bool)
	if f, ok := o.Field("alias"); ok && e.Window == 0 {
		f.Fail("without a window Envoy is told of no limit that could have a name", "write window, such as 1m, or remove alias")
	}
	if f, ok := o.Field("alternative"); ok && e.Alternative && !(e.Deny && e.Window > 0) {
		f.Fail("only what denies can wait for other limits to deny", "write deny: true and window, or remove alternative")
	}
	e.Metadata = strictyaml.Optional(o, "metadata", nil, readMetadata)
	if f, ok := o.Field("metadata"); ok && (e.Deny || e.Window == 0) {
		f.Fail("Envoy is told no metadata of what denies, or has no window", "write window, such as 1m, without deny, or remove metadata")
	}
}

func (e Exemption) path() string { return e.Domain + ": " + formatEntries(e.Entries) }

// checkPaths refuses two paths that are the same, and a name that a limit with entries shares with
// another.
func checkPaths(entries []source, exempt []Exemption) {
	paths, names := map[string]string{}, map[limitName]bool{}
	for _, e := range exempt {
		paths[e.path()] = "an exemption"
	}
	for _, e := range entries {
		id := limitName{e.Domain, e.Name}
		if e.Entries == nil {
			continue
		}
		if names[id] {
			e.object.At("name").Fail("another limit with entries has this name", "give each a name of its own")
		}
		names[id] = true
		path := e.Domain + ": " + formatEntries(e.Entries)
		if other := paths[path]; other != "" {
			e.object.At("entries").Fail(fmt.Sprintf("%s has the same path", other),
				"remove one of them, or change its entries")
		}
		paths[path] = e.String()
	}
	checkPassedOver(entries, exempt)
	for _, e := range entries {
		if e.Entries == nil && names[limitName{e.Domain, e.Name}] {
			e.object.At("name").Fail("a limit with entries has this name", "give each a name of its own")
		}
	}
}

// checkPassedOver refuses a path that leads one step further than that of a limit with classes, by
// the descriptor that says the class: nobody would ever get there.
func checkPassedOver(entries []source, exempt []Exemption) {
	further := map[string]string{}
	note := func(domain string, path []Entry, by string) {
		if last := len(path) - 1; last > 0 {
			further[domain+": "+formatEntries(path[:last])+" "+path[last].Name] = by
		}
	}
	for _, e := range exempt {
		note(e.Domain, e.Entries, "an exemption")
	}
	for _, e := range entries {
		note(e.Domain, e.Entries, e.String())
	}
	for _, e := range entries {
		if e.Entries == nil || e.Classes == nil {
			continue
		}
		if other := further[e.Domain+": "+formatEntries(e.Entries)+" "+e.Classes.By]; other != "" {
			e.object.At("classes").Fail(fmt.Sprintf("%s says the class, and is passed over in matching, so %s would never apply", e.Classes.By, other),
				"give the class another descriptor, or remove classes")
		}
	}
}
