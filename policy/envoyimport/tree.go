package envoyimport

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/strictyaml"
)

// configuration is what one file says.
type configuration struct {
	name        string
	unread      error // why it is no YAML, and has nothing of what follows
	root        strictyaml.Value
	domain      string           // empty if the file has none that is valid
	named       strictyaml.Value // where the domain is named
	descriptors []*descriptor
	reader      *reader // which read it
}

// descriptor is one descriptor of a file, with those below it.
type descriptor struct {
	at     strictyaml.Value
	key    string
	value  string // empty: any value
	shared bool
	limit  *rateLimit // nil: none
	below  []*descriptor
}

// composite returns the text by which envoyproxy/ratelimit finds a descriptor among its siblings.
func (d *descriptor) composite() string {
	if d.value == "" {
		return d.key
	}
	return d.key + "_" + d.value
}

// entry returns the entry of a path that a document has for the descriptor.
func (d *descriptor) entry() policy.Entry {
	if d.value == "" {
		return policy.Entry{Name: d.key, AnyValue: true}
	}
	return policy.NewEntry(d.key, d.value)
}

// rateLimit is a rate_limit, and what its descriptor says of it.
type rateLimit struct {
	at        strictyaml.Value
	requests  int64
	unit      string // one of units; empty if unlimited
	unlimited bool
	name      string
	replaces  []string
	shadow    bool
	quota     bool
	metadata  *policy.Metadata // nil: none
}

// countless reports whether nothing is counted: all requests are admitted, or all denied.
func (l *rateLimit) countless() bool { return l.unlimited || l.requests == 0 }

const (
	mendRoot       = "write domain and descriptors"
	mendDescriptor = "write the fields of a descriptor: key, value, rate_limit, descriptors"
)

var (
	rootFields       = []string{"domain", "descriptors"}
	descriptorFields = []string{"key", "value", "rate_limit", "descriptors", "shadow_mode",
		"quota_mode", "share_threshold", "detailed_metric", "value_to_metric", "metadata"}
	limitFields = []string{"unit", "requests_per_unit", "unlimited", "name", "replaces"}
)

var fileKind = strictyaml.Kind{
	MaxBytes: MaxFileBytes,
	TooLarge: "import a configuration that is split into smaller files",
	Empty:    mendRoot,
	TooDeep:  fmt.Sprintf("a limits document has at most %d entries a path", policy.MaxEntries),
	Foreign:  true,
	// the only fields whose values are mappings
	MergedInside: []string{"rate_limit", "metadata"},
}

// reader reads one file, and counts and warns for it.
type reader struct {
	descriptors int // with those of the files before
	warnings    []policy.Warning
	leftOut     map[string]int // how often each field was left out
}

// warn warns of a field.
func (r *reader) warn(f strictyaml.Value, text, mend string) {
	r.add(policy.Warning{Pos: f.Pos(), Path: f.Path(), Problem: text, Mend: mend})
}

func (r *reader) add(w policy.Warning) {
	if len(r.warnings) < strictyaml.MaxErrors {
		r.warnings = append(r.warnings, w)
	}
}

// object reads a mapping with the known fields. envoyproxy/ratelimit refuses a file with any other
// name, but it passes over a field that stands where another mapping's is meant.
func (r *reader) object(f strictyaml.Value, mend string, known []string) (strictyaml.Object, bool) {
	var elsewhere []string
	for _, name := range slices.Concat(rootFields, descriptorFields, limitFields) {
		if !slices.Contains(known, name) {
			elsewhere = append(elsewhere, name)
		}
	}
	o, ok := f.Object(mend, known, elsewhere...)
	for _, name := range elsewhere {
		if f, given := o.Field(name); given {
			r.warn(f, "envoyproxy/ratelimit passes over it here", "remove it, or move it to where it has an effect")
		}
	}
	return o, ok
}

// read reads one file. It reports problems at the root.
func (r *reader) read(root strictyaml.Value) *configuration {
	c := &configuration{root: root, named: root, reader: r}
	for _, remark := range root.Remarks() {
		r.add(policy.Warning(*remark))
	}
	o, ok := r.object(root, mendRoot, rootFields)
	if !ok {
		return c
	}
	c.domain, c.named = readWord(o, "domain",
		"write the domain that the rate limit filter of Envoy sends", "a name that domains can have",
		"the filter of Envoy")
	if f, ok := field(o, "descriptors"); ok {
		c.descriptors = r.readDescriptors(f, 1)
	}
	return c
}

// field returns a field that has a value. An empty field is as if it were not there.
func field(o strictyaml.Object, name string) (strictyaml.Value, bool) {
	f, ok := o.Field(name)
	return f, ok && !f.Null()
}

// readWord reads a field that must hold a name. It returns the object if the field is not there. is
// says what the name is to be, and also where else to mend it.
func readWord(o strictyaml.Object, field, mend, is, also string) (string, strictyaml.Value) {
	f, ok := o.Required(field, mend)
	if !ok {
		return "", o.Value
	}
	if f.Null() {
		f.Fail("empty", mend)
		return "", f
	}
	name, ok := f.Plain(mend)
	if ok && !policy.IsName(name) {
		f.Fail(fmt.Sprintf("%s is not %s", f.Describe(), is), policy.MendName+", here and in "+also)
		return "", f
	}
	return name, f
}

// readDescriptors reads a list of descriptors, of which depth-1 stand above it.
func (r *reader) readDescriptors(f strictyaml.Value, depth int) []*descriptor {
	items, ok := f.List("list the descriptors, each starting with a dash")
	if !ok {
		return nil
	}
	if depth > policy.MaxEntries && len(items) > 0 {
		items[0].Fail(fmt.Sprintf("descriptors nested %d deep", depth),
			fmt.Sprintf("limits have at most %d entries", policy.MaxEntries))
		return nil
	}
	var all []*descriptor
	for _, item := range items {
		r.descriptors++
		if r.descriptors == MaxDescriptors+1 {
			item.Fail(fmt.Sprintf("more than %d descriptors", MaxDescriptors),
				"import fewer files at a time, into a document each")
		}
		if r.descriptors > MaxDescriptors {
			break
		}
		if d := r.readDescriptor(item, depth); d != nil {
			all = append(all, d)
		}
	}
	return all
}

// readDescriptor reads a descriptor; it returns nil for one that has no key.
func (r *reader) readDescriptor(f strictyaml.Value, depth int) *descriptor {
	o, ok := r.object(f, mendDescriptor, descriptorFields)
	if !ok {
		return nil
	}
	d := &descriptor{at: f}
	d.key, _ = readWord(o, "key", "write the key of the descriptor's entry",
		"a key that limits can have", "Envoy")
	if f, ok := field(o, "value"); ok {
		d.value = readValue(f)
	}
	d.shared = readShared(o, d.value)
	if f, ok := field(o, "rate_limit"); ok {
		d.limit = r.readLimit(f)
	}
	if f, ok := field(o, "descriptors"); ok {
		d.below = r.readDescriptors(f, depth+1)
	}
	r.readModes(o, d.limit)
	r.readMetadata(o, d.limit)
	r.leaveOut(o)
	if d.key == "" {
		return nil
	}
	return d
}

func readValue(f strictyaml.Value) string {
	value, _ := f.Plain("write the value, with * for any text")
	if n := strings.Count(value, "*"); n > policy.MaxStars {
		f.Fail(fmt.Sprintf("%d times *", n), fmt.Sprintf("use at most %d, or list the values", policy.MaxStars))
	}
	if len(value) > policy.MaxConditionText {
		f.Fail(fmt.Sprintf("%d bytes long", len(value)),
			fmt.Sprintf("match on a value of at most %d bytes", policy.MaxConditionText))
	}
	return value
}

func readShared(o strictyaml.Object, value string) bool {
	f, ok := field(o, "share_threshold")
	if !ok || !f.Bool() {
		return false
	}
	if !strings.Contains(value, "*") {
		f.Fail("only the values of a pattern can share a count",
			"write a value with a *, or remove share_threshold")
	}
	return true
}

// readModes reads the modes of a limit, which stand beside it.
func (r *reader) readModes(o strictyaml.Object, limit *rateLimit) {
	read := func(name string) bool {
		f, ok := field(o, name)
		if !ok || !f.Bool() {
			return false
		}
		if limit == nil || limit.unlimited {
			r.warn(f, "has no effect, for no limit stands here",
				"remove it, or move it to the limit that is meant")
			return false
		}
		return true
	}
	shadow, quota := read("shadow_mode"), read("quota_mode")
	if shadow && quota {
		o.At("quota_mode").Fail("a limit cannot be in both shadow_mode and quota_mode",
			"remove one: a shadow limit never denies, so no other quota would deny beside it either")
	}
	if limit != nil {
		limit.shadow, limit.quota = shadow, quota
	}
}

// readMetadata reads what Envoy is told where a limit lets pass, which stands beside it.
func (r *reader) readMetadata(o strictyaml.Object, limit *rateLimit) {
	f, ok := field(o, "metadata")
	if !ok {
		return
	}
	m := policy.ReadMetadata(f)
	switch {
	case m == nil:
	case limit == nil || limit.unlimited:
		r.warn(f, "has no effect, for no limit stands here", "remove it, or move it to the limit that is meant")
	case limit.requests == 0 && !limit.shadow:
		r.warn(f, "has no effect, for a limit of 0 lets nothing pass", "remove it")
	default:
		limit.metadata = m
	}
}

// leaveOut warns of what changes no decision.
func (r *reader) leaveOut(o strictyaml.Object) {
	for _, name := range []string{"detailed_metric", "value_to_metric"} {
		if f, ok := field(o, name); ok && f.Bool() {
			r.leftOut[name]++
			r.warn(f, "left out: quotad has no metrics of single descriptors", "no decision depends on it")
		}
	}
}
