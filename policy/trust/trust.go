// Package trust reads what somebody who calls a node shows of himself, and whom he trusts: a token
// and certificates, from the files that he names.
package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/quotad/quotad/policy/files"
)

// maxTokenBytes bounds the file of a token, and maxCertBytes those of certificates.
const (
	maxTokenBytes = 1 << 10
	maxCertBytes  = 256 << 10
)

// Token returns the token that a file has.
func Token(path string) (string, error) {
	b, err := files.Read(path, maxTokenBytes)
	if err != nil {
		return "", fmt.Errorf("%w; give the file that has the token", err)
	}
	token := strings.TrimSpace(string(b))
	if token == "" || strings.ContainsAny(token, " \r\n\t") {
		return "", errors.New("the file has no token, or more than one; " +
			"it must have one line, of quotad keys token")
	}
	return token, nil
}

// Files are the paths of certificates. Empty: none.
type Files struct {
	CA   string // of the authorities that a node's certificate may be of; empty: those of the system
	Cert string // that says who calls; given with Key
	Key  string
}

// TLS reads the files. It returns nil if there are none. name is what the errors call the setting
// of CA ("ca") and of Cert ("cert").
func (f Files) TLS(name func(setting string) string) (*tls.Config, error) {
	if f == (Files{}) {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		b, err := files.Read(f.CA, maxCertBytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w; check the path", name("ca"), err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("%s: %s holds no certificate; give that of the authority, as PEM",
				name("ca"), f.CA)
		}
	}
	if f.Cert == "" {
		return c, nil
	}
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; give a certificate and its own key, both PEM", name("cert"),
			err)
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

// Readable reports whether others on the way could read what is sent to a URL: it goes to another
// machine in plain text.
func Readable(to *url.URL) bool {
	host := to.Hostname()
	ip, err := netip.ParseAddr(host)
	return to.Scheme == "http" && host != "localhost" && (err != nil || !ip.IsLoopback())
}
