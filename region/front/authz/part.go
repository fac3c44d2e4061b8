package authz

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/quotad/quotad/policy/strictyaml"
)

// partFields are the fields of a descriptor: one source, and how it is treated.
var partFields = append(sourceNames(), "values", "default", "optional", "v4_bits", "v6_bits")

func sourceNames() (all []string) {
	for _, s := range sources {
		all = append(all, string(s))
	}
	return all
}

// readPart reads where the value of a descriptor comes from.
func readPart(f strictyaml.Value) (p part) {
	mend := fmt.Sprintf("write one of %v, such as {header: X-Account}", sourceNames())
	o, ok := f.Object(mend, partFields)
	if !ok {
		return p
	}
	for _, s := range sources {
		f, given := o.Field(string(s))
		if !given {
			continue
		}
		if p.from != "" {
			f.Fail("there is "+string(p.from)+" already", "make two descriptors of them")
			continue
		}
		p.from = s
		p.readSource(f)
	}
	if p.from == "" {
		f.Fail("no source", mend)
	}
	if f, ok := o.Field("values"); ok {
		p.readKnown(f)
	}
	if f, ok := o.Field("default"); ok {
		p.usual, p.hasUsual = f.Text("write the value in place of a missing one")
		if len(p.usual) > maxText {
			f.Fail(fmt.Sprintf("%d bytes long", len(p.usual)), fmt.Sprintf("write at most %d", maxText))
		}
	}
	if f, ok := o.Field("optional"); ok {
		if p.optional = f.Bool(); p.optional && p.hasUsual {
			f.Fail("with a default the value is never missing", "remove one of the two")
		}
	}
	p.v4, p.v6 = 32, 128
	for name, bits := range map[string]*int{"v4_bits": &p.v4, "v6_bits": &p.v6} {
		if f, ok := o.Field(name); ok {
			*bits = int(f.Integer(1, int64(*bits)))
			if p.from != fromAddress {
				f.Fail("only client_address has bits", "remove it")
			}
		}
	}
	return p
}

// readKnown reads what stands for which values.
func (p *part) readKnown(f strictyaml.Value) {
	const mend = "write what stands for each value, such as {key-of-acme: acme}"
	if p.from == fixed || p.from == fromAddress {
		f.Fail("nothing can stand for a "+string(p.from), "remove it")
	}
	entries, ok := f.Entries(mend)
	if ok && (len(entries) == 0 || len(entries) > maxKnown) {
		f.Fail(fmt.Sprintf("%d values", len(entries)), fmt.Sprintf("write 1 to %d", maxKnown))
	}
	p.known = make(map[string]string, len(entries))
	for _, e := range entries {
		text, ok := e.Value.Text(mend)
		if ok && (text == "" || len(text) > maxText || e.Name == "") {
			e.Value.Fail(e.Value.Describe()+" cannot stand here", fmt.Sprintf("write 1 to %d bytes", maxText))
		}
		p.known[e.Name] = text
	}
}

// readSource reads what a source needs to know.
func (p *part) readSource(f strictyaml.Value) {
	switch p.from {
	case fromHeader:
		p.of = readText(f, headers.MatchString, "name a header, such as X-Account")
		switch name := http.CanonicalHeaderKey(p.of); {
		case name == "Host":
			f.Fail("no header of a request is called so", "write {host: true}")
		case strings.HasPrefix(name, "X-Forwarded-"):
			f.Fail("whoever asks can say this", "write client_address, host, path or method: true, which are believed of trusted proxies alone")
		}
	case fromQuery, fromCookie, fixed:
		p.of, _ = f.Text("write a name, or the value itself")
		if (p.of == "" && p.from != fixed) || len(p.of) > maxText {
			f.Fail(f.Describe()+" cannot stand here", fmt.Sprintf("write 1 to %d bytes", maxText))
		}
	case fromPath:
		if word, ok := f.IsText(); ok && word == "all" {
			return
		}
		p.segments = int(f.Integer(1, maxSegments))
	default:
		if !f.Bool() {
			f.Fail("this takes nothing from the request", "write true, or another source")
		}
	}
}

// matches reports whether the rule is for a request. The error says that this cannot be known.
func (r *rule) matches(c *client) (is bool, err error) {
	for _, condition := range []struct {
		name, said string
		asked, met bool
	}{
		{"path", c.path, r.path != "", under(c.path, r.path)},
		{"host", c.host, r.host != "", r.host == c.host},
		{"method", c.method, len(r.methods) > 0, slices.Contains(r.methods, c.method)},
	} {
		switch {
		case !condition.asked:
		case condition.said == "":
			err = cmp.Or(err, c.unknown(condition.name))
		case !condition.met:
			return false, nil
		}
	}
	return err == nil, err
}

// under reports whether a path is another one, or below it.
func under(path, above string) bool {
	above = strings.TrimSuffix(above, "/")
	return path == above || strings.HasPrefix(path, above+"/")
}
