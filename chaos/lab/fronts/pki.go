package fronts

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quotad/quotad/region/front/roles"
)

// PKI is an authority, with the certificate of a server on loopback and of a caller of each role.
type PKI struct {
	dir  string
	Pool *x509.CertPool
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// File returns the path of a file.
func (p *PKI) File(name string) string { return filepath.Join(p.dir, name) }

// NewPKI makes an authority, and writes its files until the end of the test.
func NewPKI(t testing.TB) *PKI {
	t.Helper()
	p := &PKI{dir: t.TempDir(), Pool: x509.NewCertPool()}
	p.cert = &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	p.key = p.issue(t, "ca", p.cert)
	p.Pool.AddCert(p.cert)
	p.issue(t, "server", &x509.Certificate{DNSNames: []string{"localhost"}})
	p.issue(t, "unnamed", &x509.Certificate{})
	for _, role := range roles.Roles() {
		p.issue(t, string(role), &x509.Certificate{URIs: []*url.URL{{Scheme: "spiffe", Host: "x.org", Path: "/" + string(role)}}})
	}
	return p
}

// issue writes a certificate and its key to files. The first is that of the authority.
func (p *PKI) issue(t testing.TB, name string, c *x509.Certificate) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer := p.key
	if signer == nil {
		signer = key
	} else {
		c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(time.Now().UnixNano()), p.cert.NotBefore, p.cert.NotAfter
		c.KeyUsage = x509.KeyUsageDigitalSignature
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, p.cert, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	if name == "ca" {
		if p.cert, err = x509.ParseCertificate(der); err != nil {
			t.Fatal(err)
		}
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(p.File(file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return key
}
