//go:build envoy

package envoy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/real/process"
)

// TestTLS: Envoy asks a node over TLS, as the page has it, and shows a certificate that has a role.
// Whoever has none is not answered, and passes no more than the bound.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	ca := newAuthority(t)
	ca.write(t, dir, "node", "quota.example.org", "")
	ca.write(t, dir, "envoy", "", "spiffe://example.org/envoy")
	ca.write(t, dir, "stranger", "", "spiffe://example.org/stranger")
	newAuthority(t).write(t, dir, "forged", "", "spiffe://example.org/envoy")
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

// authority issues certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	suite.Must(t, err)
	own := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, own, own, &a.key.PublicKey, a.key)
	suite.Must(t, err)
	a.certificate, err = x509.ParseCertificate(der)
	suite.Must(t, err)
	return a
}

// write writes a certificate, its key and its authority's certificate.
func (a *authority) write(t *testing.T, dir, name, host, uri string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	suite.Must(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	if host != "" {
		c.DNSNames, c.IPAddresses = []string{host}, []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	if uri != "" {
		parsed, err := url.Parse(uri)
		suite.Must(t, err)
		c.URIs = []*url.URL{parsed}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.certificate, &key.PublicKey, a.key)
	suite.Must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	suite.Must(t, err)
	for file, block := range map[string]*pem.Block{name + ".pem": {Type: "CERTIFICATE", Bytes: der},
		name + ".key":    {Type: "PRIVATE KEY", Bytes: secret},
		name + "-ca.pem": {Type: "CERTIFICATE", Bytes: a.certificate.Raw}} {
		suite.Must(t, os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600))
	}
}
