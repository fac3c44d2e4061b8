package authz

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/files"
	"github.com/quotad/quotad/policy/strictyaml"
)

// Bounds of a mapping.
const (
	maxBytes       = 256 << 10
	maxRules       = 1000
	maxTrusted     = 1000
	maxDescriptors = 16
	maxText        = 256
	maxKnown       = 1000 // values of one descriptor that stand for others
	// MaxCost is the largest cost that a header may say.
	MaxCost = 1_000_000
	// maxSegments bounds the segments of a path that become a value.
	maxSegments = 32
)

// Mapping says what becomes of the requests of proxies. It never changes, and is safe for
// concurrent use.
type Mapping struct {
	trusted []netip.Prefix
	believed
	rules []rule
	// DenyOthers says that requests are denied that no rule is for.
	DenyOthers bool
}

// believed names the header in which trusted proxies say a fact; empty: they do not say it.
type believed struct{ method, uri, host, address string }

// usual are the headers that Caddy and Traefik set.
var usual = believed{"X-Forwarded-Method", "X-Forwarded-Uri", "X-Forwarded-Host", "X-Forwarded-For"}

// rule says what a request of some paths and methods is described by.
type rule struct {
	at      place
	domain  string
	path    string   // that the request's path begins with
	methods []string // none: all
	host    string   // empty: all
	parts   []part
	cost    *cost
}

// part is a descriptor and where its value comes from.
type part struct {
	at       place
	name     string
	from     source
	of       string // name of the header, parameter or cookie; or the fixed text
	segments int    // of the path; 0: all
	v4, v6   int    // bits of an address
	usual    string // in place of a missing value
	hasUsual bool
	optional bool // leave the descriptor out if its value is missing
	// known says what stands for each value; all others are as good as missing. Nil: each value
	// stands for itself.
	known map[string]string
}

// place is where something stands in the file.
type place struct {
	pos  strictyaml.Position
	path string
}

func placeOf(f strictyaml.Value) place { return place{f.Pos(), f.Path()} }

// source is where a value comes from.
type source string

const (
	fromHeader  source = "header"
	fromQuery   source = "query"
	fromCookie  source = "cookie"
	fromPath    source = "path"
	fromMethod  source = "method"
	fromHost    source = "host"
	fromAddress source = "client_address"
	fixed       source = "value"
)

var sources = []source{fromHeader, fromQuery, fromCookie, fromPath, fromMethod, fromHost, fromAddress,
	fixed}

type cost struct {
	header string
	most   int64
}

var kind = strictyaml.Kind{MaxBytes: maxBytes, TooLarge: "write fewer rules",
	Empty:   "write trusted and rules",
	TooDeep: "a mapping needs only trusted, on_no_rule and rules, each rule one mapping"}

// Load reads a mapping from a file. If that could be read, the error is a strictyaml.Errors.
func Load(path string) (*Mapping, error) {
	src, err := files.Read(path, maxBytes)
	if err != nil && len(src) <= maxBytes {
		return nil, fmt.Errorf("read the mapping for proxies: %w; check the path", err)
	}
	return Parse(path, src)
}

// Parse reads a mapping. The error is a strictyaml.Errors with all that is wrong.
func Parse(path string, src []byte) (*Mapping, error) {
	root, err := strictyaml.Read(path, src, kind)
	if err != nil {
		return nil, err
	}
	m := &Mapping{}
	o, ok := root.Object("write trusted, forwarded, on_no_rule and rules",
		[]string{"trusted", "forwarded", "on_no_rule", "rules"})
	if ok {
		m.read(o)
	}
	if err := root.Err(); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Mapping) read(o strictyaml.Object) {
	m.trusted = strictyaml.Optional(o, "trusted", nil, readTrusted)
	m.believed = strictyaml.Optional(o, "forwarded", usual, readBelieved)
	m.DenyOthers = strictyaml.Optional(o, "on_no_rule", "allow", strictyaml.Word("allow", "deny")) == "deny"
	f, ok := o.Required("rules", "list rules, such as {domain: api, descriptors: {account: {header: X-Account}}}")
	if !ok {
		return
	}
	items, ok := f.List("list the rules, each starting with a dash")
	if ok && (len(items) == 0 || len(items) > maxRules) {
		f.Fail(fmt.Sprintf("%d rules", len(items)), fmt.Sprintf("write 1 to %d", maxRules))
	}
	for _, item := range items {
		m.rules = append(m.rules, readRule(item))
	}
}

// readBelieved reads in which headers trusted proxies say what. What is not named is not believed:
// a header that a proxy does not set, its client does.
func readBelieved(f strictyaml.Value) (b believed) {
	facts := map[string]*string{"method": &b.method, "uri": &b.uri, "host": &b.host, "address": &b.address}
	o, ok := f.Object("name the headers that the proxy sets, such as {uri: X-Original-URI, method: X-Original-Method}",
		[]string{"method", "uri", "host", "address"})
	if !ok {
		return b
	}
	for name, header := range facts {
		*header = strictyaml.Optional(o, name, "", texts(headers.MatchString, "name a header that the proxy sets"))
	}
	return b
}

func readTrusted(f strictyaml.Value) (all []netip.Prefix) {
	const mend = "write addresses of proxies, such as 10.0.0.0/8 or 127.0.0.1"
	items, ok := f.List(mend)
	if !ok {
		return nil
	}
	if len(items) > maxTrusted {
		f.Fail(fmt.Sprintf("%d addresses", len(items)), fmt.Sprintf("write at most %d", maxTrusted))
	}
	for _, item := range items {
		text, ok := item.Text(mend)
		if !ok {
			continue
		}
		p, err := netip.ParsePrefix(text)
		if a, alone := netip.ParseAddr(text); err != nil && alone == nil {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil {
			item.Fail(item.Describe()+" is no address", mend)
			continue
		}
		if p.Bits() == 0 {
			item.Fail("these are all addresses, so that every client is believed", mend)
		}
		all = append(all, p.Masked())
	}
	return all
}

var (
	headers = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$")
	methods = regexp.MustCompile(`^[A-Z]{1,32}$`)
)

func readRule(f strictyaml.Value) (r rule) {
	r.at = placeOf(f)
	o, ok := f.Object("write domain and descriptors", []string{"domain", "path", "methods", "host", "descriptors", "cost"})
	if !ok {
		return r
	}
	r.domain = strictyaml.Needed(o, "domain", "name the domain of the limits, such as api",
		texts(policy.IsName, policy.MendName))
	if f, ok := o.Field("path"); ok {
		r.path, _ = f.Text("write how the path begins, such as /v1/")
		if !strings.HasPrefix(r.path, "/") || len(r.path) > maxText {
			f.Fail(f.Describe()+" is no beginning of a path", fmt.Sprintf("write /, and at most %d bytes", maxText))
		}
	}
	if f, ok := o.Field("host"); ok {
		text, _ := f.Text("write a host name")
		r.host = strings.ToLower(text)
	}
	if f, ok := o.Field("methods"); ok {
		items, _ := f.List("list methods, such as [GET, HEAD]")
		for _, item := range items {
			r.methods = append(r.methods, readText(item, methods.MatchString, "write a method, such as POST"))
		}
	}
	r.cost = strictyaml.Optional(o, "cost", nil, readCost)
	r.parts = strictyaml.Needed(o, "descriptors", "say what each descriptor is made of: {account: {header: X-Account}}",
		readParts)
	return r
}

// texts returns a reader of texts of a form.
func texts(form func(string) bool, mend string) func(strictyaml.Value) string {
	return func(f strictyaml.Value) string { return readText(f, form, mend) }
}

func readText(f strictyaml.Value, form func(string) bool, mend string) string {
	text, ok := f.Text(mend)
	if ok && !form(text) {
		f.Fail(f.Describe()+" cannot stand here", mend)
	}
	return text
}

func readCost(f strictyaml.Value) *cost {
	o, ok := f.Object("write {header: X-Cost, max: 100}", []string{"header", "max"})
	if !ok {
		return nil
	}
	return &cost{
		header: strictyaml.Needed(o, "header", "name the header that says the cost",
			texts(headers.MatchString, "name a header, such as X-Cost")),
		most: strictyaml.Needed(o, "max", "say the largest cost that is believed",
			strictyaml.Whole[int64](1, MaxCost)),
	}
}

// readParts reads the descriptors, sorted by name.
func readParts(f strictyaml.Value) (all []part) {
	entries, ok := f.Entries("write descriptors as {account: {header: X-Account}}")
	if !ok {
		return nil
	}
	if len(entries) == 0 || len(entries) > maxDescriptors {
		f.Fail(fmt.Sprintf("%d descriptors", len(entries)), fmt.Sprintf("write 1 to %d", maxDescriptors))
	}
	for _, e := range entries {
		if !policy.IsName(e.Name) {
			e.Key.Fail(fmt.Sprintf("%q is not a valid name", e.Name), policy.MendName)
		}
		p := readPart(e.Value)
		p.name, p.at = e.Name, placeOf(e.Key)
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b part) int { return strings.Compare(a.name, b.name) })
	return all
}
