package roles

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// file returns a roles file with a caller of each role, by token, and the tokens.
func file(t testing.TB) (src string, tokens map[Role]string) {
	t.Helper()
	tokens = map[Role]string{}
	var b strings.Builder
	b.WriteString("callers:\n")
	for _, role := range Roles() {
		token, hashed := NewToken()
		tokens[role] = token
		fmt.Fprintf(&b, "  - {name: the-%s, roles: [%s], tokens: [%q], certificates: [\"spiffe://x.org/%s\", \"dns:%s.x.org\"]}\n",
			role, role, hashed, role, role)
	}
	return b.String(), tokens
}

func parse(t testing.TB, src string) *Callers {
	t.Helper()
	c, err := Parse("roles.yaml", []byte(src))
	suite.Must(t, err)
	return c
}

// TestRoles: who operates may read, who is admin may operate, and check is apart.
func TestRoles(t *testing.T) {
	all := append(Roles(), Open, Known, "")
	want := map[Role][]Role{Check: {Check}, Read: {Read}, Operate: {Read, Operate},
		Admin: {Read, Operate, Admin}}
	for has, covered := range want {
		for _, need := range all {
			if got := has.covers(need); got != slices.Contains(covered, need) {
				t.Errorf("%s covers %q: %v", has, need, got)
			}
		}
	}
}

func TestTokens(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		token, hashed := NewToken()
		sum, ok := hashOf(token)
		read, readable := readHash(hashed)
		if !ok || !readable || sum != read || HashToken(token) != hashed || seen[token] ||
			len(token) != len(tokenPrefix)+43 {
			t.Fatalf("%s, %s", token, hashed)
		}
		seen[token] = true
	}
	for _, text := range []string{"", "sha256:", "sha256:00", "md5:" + strings.Repeat("0", 64),
		"sha256:" + strings.Repeat("0", 63), "sha256:" + strings.Repeat("0", 65),
		"sha256:" + strings.Repeat("g", 64), strings.Repeat("0", 64)} {
		if _, ok := readHash(text); ok {
			t.Errorf("%q is read as a hash", text)
		}
	}
}

// TestATokenIsFoundWithoutAllocating: on the path of every request.
func TestATokenIsFoundWithoutAllocating(t *testing.T) {
	src, tokens := file(t)
	callers := parse(t, src)
	token := tokens[Check]
	if n := testing.AllocsPerRun(100, func() {
		if callers.byToken(token) == nil {
			t.Fatal("unknown")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestRefusedFiles(t *testing.T) {
	const hash = "sha256:0000000000000000000000000000000000000000000000000000000000000001"
	token, _ := NewToken()
	one := func(fields string) string { return "callers:\n  - {" + fields + "}\n" }
	for _, c := range []struct{ name, src, want string }{
		{"empty", "", "roles.yaml:1:1"},
		{"no callers", "callers: []", "callers: empty"},
		{"another field", "users: []", "users: no such field"},
		{"no name", one(`roles: [check], tokens: ["` + hash + `"]`), "name: missing"},
		{"an odd name", one(`name: "a b", roles: [check], tokens: ["` + hash + `"]`), "this is no name of a caller"},
		{"one name twice", one(`name: a, roles: [check], tokens: ["`+hash+`"]`) + `  - {name: a, roles: [read], certificates: ["spiffe://x/a"]}`, "another caller has this name"},
		{"no roles", one(`name: a, tokens: ["` + hash + `"]`), "roles: missing"},
		{"empty roles", one(`name: a, roles: [], tokens: ["` + hash + `"]`), "give check, read, operate or admin"},
		{"another role", one(`name: a, roles: [root], tokens: ["` + hash + `"]`), `"root" is not known here`},
		{"the role of nobody", one(`name: a, roles: [open], tokens: ["` + hash + `"]`), `"open" is not known here`},
		{"a role twice", one(`name: a, roles: [read, read], tokens: ["` + hash + `"]`), "given twice"},
		{"no domains", one(`name: a, roles: [check], domains: [], tokens: ["` + hash + `"]`), "domains: empty"},
		{"an empty domain", one(`name: a, roles: [check], domains: [""], tokens: ["` + hash + `"]`), "this is no domain"},
		{"no proof", one(`name: a, roles: [check]`), "cannot prove who it is"},
		{"no tokens", one(`name: a, roles: [check], tokens: []`), "tokens: empty"},
		{"a token in place of its hash", one(`name: a, roles: [check], tokens: ["` + token + `"]`), "this is not the hash of a token"},
		{"a token in place of hashes", one(`name: a, roles: [check], tokens: "` + token + `"`), "this is no list"},
		{"one token twice", one(`name: a, roles: [check], tokens: ["` + hash + `", "` + hash + `"]`), "this token is given twice"},
		{"a common name", one(`name: a, roles: [check], certificates: ["alice"]`), "this is no name in a certificate"},
		{"dns of nothing", one(`name: a, roles: [check], certificates: ["dns:"]`), "this is no name in a certificate"},
		{"one certificate twice", one(`name: a, roles: [check], certificates: ["dns:a", "dns:a"]`), "this name is given twice"},
		{"too many tokens", one(`name: a, roles: [check], tokens: [` + strings.Repeat(`"`+hash+`",`, maxTokens) + `x]`), "more than 8"},
		{"too many callers", "callers:\n" + strings.Repeat("  - {name: a}\n", maxCallers+1), "more than 4096 callers"},
		{"too long", strings.Repeat("#\n", rolesKind.MaxBytes), "larger than 1 MiB"},
	} {
		_, err := Parse("roles.yaml", []byte(c.src))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		} else if strings.Contains(err.Error(), token[:12]) {
			t.Errorf("%s: the error tells the token: %v", c.name, err)
		}
	}
}

// FuzzParse: the reader never panics, and nobody gets in by a file that it accepts but with what
// the file says.
func FuzzParse(f *testing.F) {
	src, _ := file(f)
	for _, seed := range []string{src, "", "callers: []", "callers:\n  - {name: a, roles: [check], domains: [x], certificates: ['dns:h']}",
		"callers: [{name: a, roles: [admin], tokens: ['sha256:" + strings.Repeat("0", 64) + "']}]"} {
		f.Add([]byte(seed))
	}
	token, _ := NewToken()
	f.Fuzz(func(t *testing.T, src []byte) {
		c, err := Parse("roles.yaml", src)
		if err != nil {
			return
		}
		if c.Count() == 0 || c.Count() > maxCallers || c.byToken(token) != nil ||
			c.byToken("") != nil || c.byNames([]string{""}) != nil {
			t.Fatalf("%q: %d callers", src, c.Count())
		}
		for _, one := range c.all {
			if one.Name == "" || len(one.roles) == 0 || one.trusted {
				t.Fatalf("%q: %+v", src, one)
			}
		}
	})
}

// certificate returns one with these names.
func certificate(ends time.Time, commonName string, uris, dns []string) *x509.Certificate {
	c := &x509.Certificate{NotAfter: ends, DNSNames: dns}
	c.Subject.CommonName = commonName
	for _, text := range uris {
		u, err := url.Parse(text)
		if err != nil {
			panic(err)
		}
		c.URIs = append(c.URIs, u)
	}
	return c
}

// TestGuard: who is let pass, by what proof.
func TestGuard(t *testing.T) {
	src, tokens := file(t)
	book := &Book{}
	book.inForce.Store(parse(t, src))
	now := time.Unix(1_000_000, 0)
	valid, over := now.Add(time.Hour), now.Add(-time.Second)
	stranger, _ := NewToken()
	for _, c := range []struct {
		name, call string
		by         Credentials
		want       string // the caller, or the reason of the refusal
	}{
		{"a probe", "/readyz", Credentials{}, ""},
		{"nobody", "/v1/check", Credentials{}, noCredentials},
		{"a token", "/v1/check", Credentials{Authorization: "Bearer " + tokens[Check]}, "the-check"},
		{"another case", "/v1/check", Credentials{Authorization: "bEARER " + tokens[Check]}, "the-check"},
		{"a stranger's token", "/v1/check", Credentials{Authorization: "Bearer " + stranger}, badToken},
		{"a hash for a token", "/v1/check", Credentials{Authorization: "Bearer " + HashToken(tokens[Check])}, badToken},
		{"an empty token", "/v1/check", Credentials{Authorization: "Bearer "}, badToken},
		{"no scheme", "/v1/check", Credentials{Authorization: tokens[Check]}, badToken},
		{"another scheme", "/v1/check", Credentials{Authorization: "Basic " + tokens[Check]}, badToken},
		{"an endless token", "/v1/check", Credentials{Authorization: "Bearer " + strings.Repeat("x", 1<<14)}, badToken},
		{"more after the token", "/v1/check", Credentials{Authorization: "Bearer " + tokens[Check] + "x"}, badToken},
		{"a bad token with a good certificate", "/v1/check", Credentials{Authorization: "Bearer " + stranger,
			Certificate: certificate(valid, "", []string{"spiffe://x.org/check"}, nil)}, badToken},
		{"a URI", "/v1/status", Credentials{Certificate: certificate(valid, "", []string{"spiffe://x.org/read"}, nil)}, "the-read"},
		{"a DNS name", "/v1/status", Credentials{Certificate: certificate(valid, "", nil, []string{"else", "read.x.org"})}, "the-read"},
		{"a common name", "/v1/status", Credentials{Certificate: certificate(valid, "the-read", nil, nil)}, badName},
		{"an unknown URI", "/v1/status", Credentials{Certificate: certificate(valid, "", []string{"spiffe://x.org/else"}, nil)}, badName},
		{"two callers", "/v1/status", Credentials{Certificate: certificate(valid, "",
			[]string{"spiffe://x.org/read", "spiffe://x.org/admin"}, nil)}, badName},
		{"an expired certificate", "/v1/status", Credentials{Certificate: certificate(over, "", []string{"spiffe://x.org/read"}, nil)}, expired},
		{"an operator cuts", "/v1/cut", Credentials{Authorization: "Bearer " + tokens[Operate]}, "the-operate"},
		{"a reader cuts", "/v1/cut", Credentials{Authorization: "Bearer " + tokens[Read]}, notItsRole},
		{"a call that is in no table", "/v1/else", Credentials{Authorization: "Bearer " + tokens[Admin]}, notItsRole},
	} {
		g := NewGuard("api", book, slog.New(slog.DiscardHandler))
		g.now = func() time.Time { return now }
		caller, err := g.Admit(c.call, c.by)
		refused, _ := errors.AsType[*Refusal](err)
		got := ""
		if caller != nil {
			got = caller.Name
		}
		if refused != nil {
			got = refusalReason(t, g)
		}
		if got != c.want || (refused == nil) != (err == nil) {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
		if refused != nil && (refused.Caller != "") != (c.want == notItsRole) {
			t.Errorf("%s: the refusal knows %q", c.name, refused.Caller)
		}
	}
}

// counted returns the value of a metric that has this label, whatever its name; 0 if there is none.
func counted(t *testing.T, c prometheus.Collector, label string) float64 {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(c)
	families, err := r.Gather()
	suite.Must(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetValue() == label {
					return m.GetCounter().GetValue()
				}
			}
		}
	}
	return 0
}

// refusalReason returns the one reason that a guard counted.
func refusalReason(t *testing.T, g *Guard) string {
	t.Helper()
	for _, reason := range []string{noCredentials, badToken, badName, expired, notItsRole, notItsDomain} {
		if counted(t, g, reason) == 1 {
			return reason
		}
	}
	return "none counted"
}

// TestCertificatesWithoutRoles: whoever has a certificate of a trusted authority may do everything.
func TestCertificatesWithoutRoles(t *testing.T) {
	g := NewGuard("api", nil, slog.New(slog.DiscardHandler))
	good := certificate(time.Now().Add(time.Hour), "alice", nil, nil)
	for _, call := range Calls() {
		if c, err := g.Admit(call, Credentials{Certificate: good}); err != nil ||
			c != nil && (c.Name != "alice" || !c.MayName("any")) {
			t.Errorf("%s: %+v, %v", call, c, err)
		}
		need, _ := NeedOf(call)
		if _, err := g.Admit(call, Credentials{Authorization: "Bearer x"}); (err == nil) != (need == Open) {
			t.Errorf("%s without a certificate: %v", call, err)
		}
	}
}

func TestDomains(t *testing.T) {
	callers := parse(t, `callers:
  - {name: a, roles: [check], domains: [api, web], certificates: ["dns:a"]}
  - {name: b, roles: [check], certificates: ["dns:b"]}`)
	for name, want := range map[string][2]bool{"dns:a": {true, false}, "dns:b": {true, true}} {
		c := callers.byNames([]string{name})
		if got := [2]bool{c.MayName("web"), c.MayName("other")}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if c := From(t.Context()); c != nil || !c.MayName("any") {
		t.Error("without roles not every domain may be named")
	}
	if c := From(With(t.Context(), callers.all[0])); c != callers.all[0] {
		t.Errorf("the context has %+v", c)
	}
}

// TestRefusalsAreBoundedInTheLog: one in a minute is logged, with neither credentials nor keys, and
// all are counted.
func TestRefusalsAreBoundedInTheLog(t *testing.T) {
	var log bytes.Buffer
	src, tokens := file(t)
	book := &Book{}
	book.inForce.Store(parse(t, src))
	g := NewGuard("api", book, slog.New(slog.NewJSONHandler(&log, nil)))
	now := time.Unix(1_000_000, 0)
	g.now = func() time.Time { return now }
	stranger, _ := NewToken()
	for range 1000 {
		_, _ = g.Admit("/v1/check", Credentials{Authorization: "Bearer " + stranger, From: "192.0.2.1:5"})
	}
	now = now.Add(time.Hour)
	_, _ = g.Admit("/v1/reset", Credentials{Authorization: "Bearer " + tokens[Read], From: "192.0.2.1:5"})
	if n := strings.Count(log.String(), "\n"); n != 2 || !strings.Contains(log.String(), `"unlogged":999`) ||
		!strings.Contains(log.String(), `"caller":"the-read"`) {
		t.Errorf("%d lines: %s", n, log.String())
	}
	for _, secret := range []string{stranger, tokens[Read], HashToken(stranger)} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log has %s: %s", secret, log.String())
		}
	}
	if n := counted(t, g, badToken); n != 1000 {
		t.Errorf("%v are counted", n)
	}
}

// TestBook: another file comes into force, a bad one does not and is told of once, and its mending
// is noticed.
func TestBook(t *testing.T) {
	path := filepath.Join(t.TempDir(), "roles.yaml")
	write := func(src string) {
		t.Helper()
		suite.Must(t, os.WriteFile(path, []byte(src), 0o600))
	}
	first, firstTokens := file(t)
	second, secondTokens := file(t)
	write(first)
	var told []error
	book, err := OpenBook(path, func(err error) { told = append(told, err) })
	suite.Must(t, err)
	has := func(tokens map[Role]string) bool { return book.Callers().byToken(tokens[Check]) != nil }
	look := func(n int) {
		t.Helper()
		told = nil
		book.look()
		book.look()
		if len(told) != n {
			t.Errorf("told %v, want %d", told, n)
		}
	}
	look(0)
	write("callers: [")
	look(1)
	if told[0] == nil || book.Fault() == "" || !has(firstTokens) {
		t.Errorf("after a bad file: %v, %q", told, book.Fault())
	}
	write(first) // as it was
	look(1)
	if told[0] != nil || book.Fault() != "" || !has(firstTokens) {
		t.Errorf("after it was mended: %v, %q", told, book.Fault())
	}
	write(second)
	look(1)
	if has(firstTokens) || !has(secondTokens) {
		t.Error("the other file is not in force")
	}
	suite.Must(t, os.Remove(path))
	look(1)
	if !has(secondTokens) || book.Fault() == "" {
		t.Error("without a file the last good one does not stay")
	}
	taken, refused := counted(t, book.changes, "taken"), counted(t, book.changes, "refused")
	if taken != 2 || refused != 2 {
		t.Errorf("%v changes are counted as taken, %v as refused", taken, refused)
	}
	if _, err := OpenBook(path, nil); err == nil {
		t.Error("a book without a file is opened")
	}
}

// TestFollow ends with its context.
func TestFollow(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	(&Book{}).Follow(ctx)
}
