package remote

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"strings"

	"github.com/quotad/quotad/policy/files"
)

// trust is whom a command trusts, and the certificate that it shows.
type trust struct{ ca, cert, key string }

// maxTokenBytes bounds the file of a token, and maxCertBytes those of certificates.
const (
	maxTokenBytes = 1 << 10
	maxCertBytes  = 256 << 10
)

// authorize puts the token into a request, and returns the client to send it with. A token is sent
// in plain text to this machine alone.
func (n *Node) authorize(q *http.Request) (*http.Client, error) {
	token, err := n.token()
	if err != nil {
		return nil, err
	}
	if token != "" && q.URL.Scheme == "http" && !onLoopback(q.URL.Hostname()) {
		return nil, errors.New("the token would go to another machine in plain text: " +
			"give --addr with https, or call the node from its own machine")
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	settings, err := n.trust.load()
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Transport: &http.Transport{TLSClientConfig: settings, Proxy: http.ProxyFromEnvironment,
			ForceAttemptHTTP2: true},
		// A node redirects nobody. Following would show the token to whoever answered.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// onLoopback reports whether a host is this machine.
func onLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// token returns the token that says who calls, empty if there is none.
func (n *Node) token() (string, error) {
	if n.tokenFile == "" {
		return strings.TrimSpace(os.Getenv("QUOTAD_TOKEN")), nil
	}
	b, err := files.Read(n.tokenFile, maxTokenBytes)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w; give the file that has the token", err)
	}
	token := strings.TrimSpace(string(b))
	if token == "" || strings.ContainsAny(token, " \r\n\t") {
		return "", errors.New("--token-file: the file has no token, or more than one; " +
			"it must have one line, of quotad keys token")
	}
	return token, nil
}

// load reads the certificates. It returns nil if none are given.
func (t trust) load() (*tls.Config, error) {
	if t == (trust{}) {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.ca != "" {
		b, err := files.Read(t.ca, maxCertBytes)
		if err != nil {
			return nil, fmt.Errorf("--ca or QUOTAD_CA: %w; check the path", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("--ca or QUOTAD_CA: %s holds no certificate; give that of the authority, as PEM",
				t.ca)
		}
	}
	if (t.cert == "") != (t.key == "") {
		return nil, errors.New("--cert and --key (QUOTAD_CERT and QUOTAD_KEY) are of no use without each other; give both")
	}
	if t.cert == "" {
		return c, nil
	}
	pair, err := tls.LoadX509KeyPair(t.cert, t.key)
	if err != nil {
		return nil, fmt.Errorf("--cert or QUOTAD_CERT: %w; give a certificate and its own key, both PEM", err)
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}
