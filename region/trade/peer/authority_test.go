package peer

import (
	"crypto/x509"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// authority issues certificates of nodes.
type authority struct {
	*testing.T
	fixtures.Authority
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	return &authority{t, fixtures.NewAuthority(t)}
}

// template is a certificate for an hour from now on, of the URIs given.
func template(uris ...string) *x509.Certificate {
	c := &x509.Certificate{KeyUsage: x509.KeyUsageDigitalSignature,
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

// filesOf returns the files of a node in a folder.
func filesOf(folder string) Files {
	base := filepath.Join(folder, "node")
	return Files{Cert: base + ".pem", Key: base + ".key", CA: base + "-ca.pem"}
}

// write issues a certificate and writes it, its key, and the authorities to trust into a folder.
func (a *authority) write(folder string, c *x509.Certificate, trusted ...*authority) Files {
	a.Helper()
	files := filesOf(folder)
	a.Write(a, folder, "node", c)
	var ca []byte
	for _, one := range trusted {
		ca = append(ca, one.PEM()...)
	}
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
