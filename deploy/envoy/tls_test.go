//go:build envoy

package envoy

import (
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/real/process"
)

// TestTLS: Envoy asks a node over TLS, as the page has it, and shows a certificate that has a role.
// Whoever has none is not answered, and passes no more than the bound.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	ca := fixtures.NewAuthority(t)
	ca.Write(t, dir, "node", &x509.Certificate{DNSNames: []string{"quota.example.org"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	named := func(name string) *x509.Certificate {
		return &x509.Certificate{URIs: []*url.URL{{Scheme: "spiffe", Host: "example.org", Path: "/" + name}}}
	}
	ca.Write(t, dir, "envoy", named("envoy"))
	ca.Write(t, dir, "stranger", named("stranger"))
	fixtures.NewAuthority(t).Write(t, dir, "forged", named("envoy"))
	address := startTLSNode(t, dir)
	for _, c := range []struct {
		certificate string
		healthy     int
		decided     bool
	}{{"envoy", 1, true}, {"stranger", 1, false}, {"forged", 0, false}, {"", 1, false}} {
		t.Run("certificate of "+c.certificate, func(t *testing.T) {
			p := startEnvoy(t, "envoy.yaml", startApp(t), []string{address}, tlsEdit(t, dir, c.certificate))
			p.awaitHealthy(t, c.healthy)
			got := p.client(t, "127.0.0.2")
			for range 20 {
				if a := got.get(t, "POST", "/login"); c.decided && a.code == http.StatusOK && !a.decided() ||
					a.code != http.StatusOK && a.problem() != nil {
					t.Errorf("%v", a)
				}
			}
			n := p.counters(t)
			if most := 13; n[undecided] > most || (n[undecided] == 0) != c.decided || (n[decidedOK] > 0) != c.decided ||
				n[undecided]+n[decidedOK] != p.app.count("/login") {
				t.Errorf("decided %d, undecided %d, arrived %d", n[decidedOK], n[undecided], p.app.count("/login"))
			}
		})
	}
}

// tlsEdit returns the page's lines about TLS, with the files of a folder. Without a certificate
// Envoy shows none.
func tlsEdit(t *testing.T, dir, certificate string) edit {
	t.Helper()
	page, err := os.ReadFile("../../docs/how-to/envoy.md")
	suite.Must(t, err)
	_, shown, found := strings.Cut(string(page), "```yaml foreign\n")
	part, _, ended := strings.Cut(shown, "```\n")
	if !found || !ended {
		t.Fatal("the page shows no lines about TLS")
	}
	const shows = "      tls_certificates: [{certificate_chain: {filename: envoy.pem}, private_key: {filename: envoy.key}}]\n"
	by := ""
	if certificate != "" {
		by = strings.ReplaceAll(shows, "envoy.", filepath.Join(dir, certificate)+".")
	}
	part = apply(t, part, edit{shows, by}, edit{"filename: ca.pem", "filename: " + filepath.Join(dir, "node-ca.pem")})
	indented := ""
	for line := range strings.Lines(part) {
		indented += "      " + line
	}
	return edit{"    - name: quotad\n", "    - name: quotad\n" + indented}
}

// startTLSNode starts a node with roles that serves over TLS, and returns where it serves Envoys.
func startTLSNode(t *testing.T, dir string) string {
	t.Helper()
	redis, err := process.StartRedis(t.Context(), t, process.RedisConfig{})
	suite.Must(t, err)
	limits, err := filepath.Abs("limits.yaml")
	suite.Must(t, err)
	at := map[string]string{}
	for _, port := range []string{"http", "grpc", "admin", "peer", "gossip"} {
		at[port] = freeAddress(t)
	}
	suite.Must(t, os.WriteFile(filepath.Join(dir, "roles.yaml"), []byte(
		"callers:\n  - {name: envoy, roles: [check], domains: [web], certificates: [\"spiffe://example.org/envoy\"]}\n"), 0o644))
	suite.Must(t, os.WriteFile(filepath.Join(dir, "node.yaml"), fmt.Appendf(nil,
		"region: here\nnode: n1\ndata_dir: data\npolicy: %s\nredis: {url: %q}\nheaders: {envoy: ietf}\n"+
			"listen: {http: %q, grpc: %q, admin: %q, peer: %q, gossip: %q}\nroles: roles.yaml\n"+
			"api_tls: {cert: node.pem, key: node.key, ca: node-ca.pem}\n", limits, redis.URL, at["http"],
		at["grpc"], at["admin"], at["peer"], at["gossip"]), 0o644))
	p, err := process.StartServer(t.Context(), t, "quotad", dir, at["grpc"], quotad(t), "serve", "--config", "node.yaml", "--bootstrap")
	suite.Must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("quotad:\n%s", p.Output())
		}
	})
	suite.Eventually(t, "the node is ready", func() bool {
		got, err := http.Get("http://" + at["admin"] + "/readyz")
		if err != nil {
			return false
		}
		defer got.Body.Close()
		return got.StatusCode == http.StatusOK
	})
	return at["grpc"]
}
