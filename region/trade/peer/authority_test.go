package peer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// authority issues certificates.
type authority struct {
	*testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{T: t, key: newKey(t)}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: now.Add(-48 * time.Hour),
		NotAfter: now.Add(10_000 * time.Hour)}
	a.cert, a.pem = sign(t, template, template, &a.key.PublicKey, a.key)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	suite.Must(t, err)
	return key
}

func sign(t *testing.T, template, parent *x509.Certificate, public *ecdsa.PublicKey,
	by *ecdsa.PrivateKey) (*x509.Certificate, []byte) {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, by)
	suite.Must(t, err)
	c, err := x509.ParseCertificate(der)
	suite.Must(t, err)
	return c, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// template is a certificate for an hour from now on, of the URIs given.
func template(uris ...string) *x509.Certificate {
	c := &x509.Certificate{SerialNumber: big.NewInt(2), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:   time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour)}
	for _, text := range uris {
		u, err := url.Parse(text)
		if err != nil {
			panic(err)
		}
		c.URIs = append(c.URIs, u)
	}
	return c
}

// of is a certificate of a node, for an hour from now on.
func of(who Identity) *x509.Certificate { return template("quotad://" + who.String()) }

// write issues a certificate and writes it, its key, and the authorities to trust into a folder.
func (a *authority) write(folder string, c *x509.Certificate, trusted ...*authority) Files {
	a.Helper()
	files := Files{Cert: filepath.Join(folder, "cert.pem"), Key: filepath.Join(folder, "key.pem"),
		CA: filepath.Join(folder, "ca.pem")}
	key := newKey(a.T)
	_, certPEM := sign(a.T, c, a.cert, &key.PublicKey, a.key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.Fatal(err)
	}
	var ca []byte
	for _, one := range trusted {
		ca = append(ca, one.pem...)
	}
	put(a.T, files.Cert, certPEM)
	put(a.T, files.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	put(a.T, files.CA, ca)
	return files
}

func put(t *testing.T, path string, b []byte) {
	t.Helper()
	suite.Must(t, os.WriteFile(path, b, 0o600))
}

// issue loads what a node of this identity has, with a certificate changed at will; the node trusts
// a, and others.
func (a *authority) issue(who Identity, change func(*x509.Certificate), others ...*authority) *TLS {
	a.Helper()
	c := of(who)
	if change != nil {
		change(c)
	}
	t, err := LoadTLS(a.write(a.TempDir(), c, append(others, a)...), who,
		func(err error) { a.Errorf("%s: the files changed: %v", who, err) })
	if err != nil {
		a.Fatal(err)
	}
	return t
}

var us1, eu1, ap1 = Identity{"us", "n1"}, Identity{"eu", "n1"}, Identity{"ap", "n1"}
