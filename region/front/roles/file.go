package roles

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/quotad/quotad/policy/files"
	"github.com/quotad/quotad/policy/strictyaml"
)

// rolesKind describes roles files to strictyaml.
var rolesKind = strictyaml.Kind{
	MaxBytes: 1 << 20,
	TooLarge: "check the path: a roles file has a few lines for each caller",
	Empty:    mendFile,
	TooDeep:  "a roles file is a list of callers",
}

// The bounds of a roles file.
const (
	maxCallers      = 4096
	maxTokens       = 8 // of one caller: two while one replaces the other
	maxCertificates = 64
	maxDomains      = 256
	maxText         = 256
)

const (
	mendFile   = `write it like callers: [{name: shop, roles: [check], tokens: ["sha256:..."]}]`
	mendCaller = `write it like {name: shop, roles: [check], domains: [api], tokens: ["sha256:..."]}`
	mendToken  = "make one with: quotad keys token, and write its sha256:... here, never the token"
	mendCert   = "write a URI or dns:NAME as it stands in the certificate, such as " +
		"spiffe://example.org/shop"
)

var callerName = regexp.MustCompile(`^[A-Za-z0-9._@-]{1,63}$`)

// read returns the content of a roles file.
func read(path string) ([]byte, error) {
	src, err := files.Read(path, rolesKind.MaxBytes)
	if err != nil && !errors.Is(err, files.ErrTooLarge) { // Parse reports that
		return nil, fmt.Errorf("read the roles file: %w; check the path, and that the user quotad "+
			"runs as may read the file", err)
	}
	return src, nil
}

// Parse reads the content of a roles file. It reports all errors of the file at once, each with its
// position, for which alone the path is used. No error repeats a token, should one stand where its
// hash belongs.
func Parse(path string, src []byte) (*Callers, error) {
	root, err := strictyaml.Read(path, src, rolesKind)
	if err != nil {
		return nil, err
	}
	f := &rolesFile{callers: newCallers()}
	f.read(root)
	if err := root.Err(); err != nil {
		return nil, err
	}
	return f.callers, nil
}

// rolesFile collects the content of a roles file.
type rolesFile struct{ callers *Callers }

func (f *rolesFile) read(root strictyaml.Value) {
	o, ok := root.Object(mendFile, []string{"callers"})
	if !ok {
		return
	}
	list, given := o.Required("callers", mendFile)
	if !given {
		return
	}
	items, ok := list.List(mendFile)
	switch {
	case ok && len(items) == 0:
		list.Fail("empty", "name at least one caller, or leave out the setting roles")
	case len(items) > maxCallers:
		list.Fail(fmt.Sprintf("there are more than %d callers", maxCallers),
			"give services of one kind one name")
		return
	}
	names := make(map[string]bool, len(items))
	for _, item := range items {
		f.caller(item, names)
	}
}

// caller reads one caller.
func (f *rolesFile) caller(v strictyaml.Value, names map[string]bool) {
	o, ok := v.Object(mendCaller, []string{"name", "roles", "domains", "tokens", "certificates"})
	if !ok {
		return
	}
	c := &Caller{}
	if name, given := o.Required("name", mendCaller); given {
		c.Name, _ = name.Text(mendCaller)
		switch {
		case !callerName.MatchString(c.Name):
			name.Fail("this is no name of a caller",
				"use 1 to 63 letters, digits, '.', '_', '@' and '-'")
		case names[c.Name]:
			name.Fail("another caller has this name", "give each caller a name of its own")
		}
		names[c.Name] = true
	}
	c.roles = strictyaml.Needed(o, "roles", mendCaller, readRoles)
	c.domains = strictyaml.Optional(o, "domains", nil, readDomains)
	f.proofs(o, c)
	f.callers.all = append(f.callers.all, c)
}

func readRoles(v strictyaml.Value) (all []Role) {
	items, ok := v.List("write it like [check]")
	if ok && len(items) == 0 {
		v.Fail("empty", "give check, read, operate or admin")
	}
	for _, item := range items {
		role := strictyaml.OneOf(item, Roles()...)
		if role != "" && slices.Contains(all, role) {
			item.Fail("given twice", "keep one of the two")
		}
		all = append(all, role)
	}
	return all
}

// readDomains reads the domains of a caller. An empty list would be one of nothing.
func readDomains(v strictyaml.Value) map[string]bool {
	all := map[string]bool{}
	for _, item := range texts(v, maxDomains, "write it like [api]") {
		name, _ := item.Text("write the name of a domain")
		if name == "" || len(name) > maxText {
			item.Fail("this is no domain", "write it as the limits document does")
		}
		all[name] = true
	}
	return all
}

// texts returns the items of a list that is not empty and not too long.
func texts(v strictyaml.Value, most int, mend string) []strictyaml.Value {
	items, ok := v.List(mend)
	switch {
	case !ok:
		return nil
	case len(items) == 0:
		v.Fail("empty", mend+", or leave it out")
	case len(items) > most:
		v.Fail(fmt.Sprintf("there are more than %d", most), "leave out those that are not needed")
		return nil
	}
	return items
}

// proofs reads by what a caller is known.
func (f *rolesFile) proofs(o strictyaml.Object, c *Caller) {
	tokens, hasTokens := o.Field("tokens")
	certificates, hasCertificates := o.Field("certificates")
	if !hasTokens && !hasCertificates {
		o.Fail("the caller cannot prove who it is", "give it tokens or certificates")
	}
	if hasTokens {
		f.tokens(tokens, c)
	}
	if hasCertificates {
		for _, item := range texts(certificates, maxCertificates, mendCert) {
			f.certificate(item, c)
		}
	}
}

// tokens reads the hashes of a caller's tokens. Its errors repeat nothing, in case a token was
// written in place of its hash.
func (f *rolesFile) tokens(v strictyaml.Value, c *Caller) {
	if _, alone := v.IsText(); alone {
		v.Fail("this is no list", mendToken)
		return
	}
	for _, item := range texts(v, maxTokens, mendToken) {
		text, _ := item.IsText()
		sum, ok := readHash(text)
		switch {
		case !ok:
			item.Fail("this is not the hash of a token", mendToken)
			continue
		case f.callers.tokens[sum.head()].caller != nil:
			item.Fail("this token is given twice", "give each caller tokens of its own")
			continue
		}
		f.callers.tokens[sum.head()] = holder{c, sum}
	}
}

// certificate reads one name in the certificates of a caller.
func (f *rolesFile) certificate(v strictyaml.Value, c *Caller) {
	name, ok := v.Text(mendCert)
	if !ok {
		return
	}
	switch {
	case !isCertificateName(name):
		v.Fail("this is no name in a certificate", mendCert)
	case f.callers.certificates[name] != nil:
		v.Fail("this name is given twice", "give each caller certificates of its own")
	default:
		f.callers.certificates[name] = c
	}
}

// isCertificateName reports whether a text can be one of namesOf.
func isCertificateName(name string) bool {
	if len(name) > maxText {
		return false
	}
	if host, dns := strings.CutPrefix(name, dnsPrefix); dns {
		return host != "" && !strings.ContainsAny(host, " /:")
	}
	u, err := url.Parse(name)
	return err == nil && u.Scheme != "" && u.Host != "" && u.String() == name
}
