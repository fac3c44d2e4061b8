package peer

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync"
	"time"

	"github.com/quotad/quotad/policy/files"
)

// Files are the paths of a node's certificate, its key and the authorities that it trusts. All
// files are PEM.
type Files struct {
	// Cert: the node's certificate, followed by those between it and the authority's, if any.
	Cert string
	Key  string // the key of the certificate
	// CA: the certificates of the authorities to trust, two while one replaces the other. A server
	// of LoadServer may have none.
	CA string
}

// TLS is a node's side of connections between regions: TLS 1.3, with a certificate of a common
// authority on both sides. It is safe for concurrent use.
type TLS struct {
	files  Files
	self   Identity // zero: a server that is no node to its callers, see LoadServer
	report func(error)

	mu      sync.Mutex
	looked  time.Time // when the files were last read
	seen    contents  // what the files contained then
	fault   string    // what was wrong with them then; empty: nothing
	inForce *material
	changes Changes
}

// Changes counts how often the files were found changed.
type Changes struct {
	Taken   uint64 // the new contents were put in force
	Refused uint64 // the new contents are unusable, and the last good ones stayed
}

// contents holds the contents of the three files.
type contents struct{ cert, key, ca []byte }

// material is what connections are made with.
type material struct {
	certificate tls.Certificate
	roots       *x509.CertPool // nil: nobody is trusted
}

// MaxFileBytes bounds each file: some hundred certificates as PEM.
const MaxFileBytes = 256 << 10

// lookEvery is the shortest time between two reads of the files.
const lookEvery = time.Second

// LoadTLS reads the files for the node self. It fails if they cannot be read, do not belong
// together, or hold another node's certificate. It does not fail if the certificate has expired,
// because a node without its peers still serves.
//
// Before a connection is made the files are read again, at most once a second. When they have
// changed, report is called: with nil if the new contents are in force, or with what is wrong with
// them, in which case the last good ones stay. It is called once for each change, in the goroutine
// that makes the connection, and must not block.
func LoadTLS(files Files, self Identity, report func(error)) (*TLS, error) {
	t := &TLS{files: files, self: self, report: report, looked: time.Now()}
	var err error
	if t.seen, err = files.read(); err != nil {
		return nil, err
	}
	if t.inForce, err = t.parse(t.seen); err != nil {
		return nil, err
	}
	return t, nil
}

// Changes returns how often the files were found changed. It first looks at the files, as is done
// before a connection.
func (t *TLS) Changes() Changes {
	t.current()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changes
}

// Expires returns when the certificate in force expires. It first looks at the files, as is done
// before a connection.
func (t *TLS) Expires() time.Time { return t.current().certificate.Leaf.NotAfter }

// current returns what is in force, after a look at the files if the last look was not just now.
func (t *TLS) current() *material {
	m, changed, err := t.look()
	if changed {
		t.report(err)
	}
	return m
}

// look reads the files unless they were read within lookEvery. changed reports whether there is
// something to report; err is what is wrong with the new contents.
func (t *TLS) look() (_ *material, changed bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if since := now.Sub(t.looked); since >= 0 && since < lookEvery {
		return t.inForce, false, nil
	}
	t.looked = now
	found, err := t.files.read()
	if err == nil && t.fault == "" && found.equal(t.seen) {
		return t.inForce, false, nil
	}
	var m *material
	if err == nil {
		t.seen = found
		m, err = t.parse(found)
	}
	if err == nil && now.After(m.certificate.Leaf.NotAfter) {
		err = fmt.Errorf("certificate %s has expired at %s; issue another", t.files.Cert,
			m.certificate.Leaf.NotAfter.Format(time.RFC3339))
	}
	switch {
	case err == nil:
		t.fault, t.inForce = "", m
		t.changes.Taken++
		return m, true, nil
	case err.Error() == t.fault:
		return t.inForce, false, nil
	}
	t.fault = err.Error()
	t.changes.Refused++
	return t.inForce, true, err
}

func (f Files) read() (c contents, err error) {
	for _, one := range []struct {
		what, path string
		into       *[]byte
	}{{"certificate", f.Cert, &c.cert}, {"key of the certificate", f.Key, &c.key},
		{"certificate of the authority", f.CA, &c.ca}} {
		if one.path == "" {
			continue
		}
		if *one.into, err = files.Read(one.path, MaxFileBytes); err != nil {
			return contents{}, fmt.Errorf(
				"read the %s: %w; check the path, and that the user quotad runs as may read the file", one.what, err)
		}
	}
	return c, nil
}

func (f Files) notAPair(err error) error {
	return fmt.Errorf("certificate %s with key %s: %w; give a certificate and its own key, both PEM", f.Cert, f.Key, err)
}

func (f Files) unnamed(err error) error {
	return fmt.Errorf("certificate %s: %w; issue one with: quotad keys cert", f.Cert, err)
}

func (c contents) equal(o contents) bool {
	return bytes.Equal(c.cert, o.cert) && bytes.Equal(c.key, o.key) && bytes.Equal(c.ca, o.ca)
}

// parse makes the contents of the files into what connections are made with.
func (t *TLS) parse(c contents) (*material, error) {
	certificate, err := tls.X509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, t.files.notAPair(err)
	}
	m := &material{certificate: certificate}
	if t.files.CA == "" {
		return m, nil
	}
	m.roots = x509.NewCertPool()
	if !m.roots.AppendCertsFromPEM(c.ca) {
		return nil, fmt.Errorf("%s holds no certificate; give that of the authority, as PEM",
			t.files.CA)
	}
	if t.self == (Identity{}) {
		return m, nil
	}
	who, err := IdentityOf(certificate.Leaf)
	switch {
	case err != nil:
		return nil, t.files.unnamed(err)
	case who != t.self:
		return nil, fmt.Errorf("certificate %s is that of %s, and this node is %s; give it its own",
			t.files.Cert, who, t.self)
	}
	if err := m.checkOwn(); err != nil {
		return nil, fmt.Errorf(
			"certificate %s, by the authority of %s: %w; give a certificate for servers and clients, and the authority that issued it", t.files.Cert, t.files.CA, err)
	}
	return m, nil
}

// checkOwn checks the node's own certificate as other nodes will, but ignores whether it is valid
// at this time.
func (m *material) checkOwn() error {
	leaf, at := m.certificate.Leaf, time.Now()
	if at.Before(leaf.NotBefore) {
		at = leaf.NotBefore
	}
	if at.After(leaf.NotAfter) {
		at = leaf.NotAfter
	}
	chain := make([]*x509.Certificate, len(m.certificate.Certificate))
	for i, der := range m.certificate.Certificate {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return err
		}
		chain[i] = c
	}
	for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		if err := m.verify(chain, use, at); err != nil {
			return err
		}
	}
	return nil
}

// verify checks that an authority in force issued a certificate. chain is the certificate, followed
// by those between it and the authority's.
func (m *material) verify(chain []*x509.Certificate, use x509.ExtKeyUsage, at time.Time) error {
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{Roots: m.roots, Intermediates: between,
		CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{use}})
	return err
}
