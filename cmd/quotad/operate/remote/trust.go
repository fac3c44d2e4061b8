package remote

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/quotad/quotad/policy/trust"
)

// authorize puts the token into a request, and returns the client to send it with. A token is sent
// in plain text to this machine alone.
func (n *Node) authorize(q *http.Request) (*http.Client, error) {
	token, err := n.token()
	if err != nil {
		return nil, err
	}
	if token != "" && trust.Readable(q.URL) {
		return nil, errors.New("the token would go to another machine in plain text: " +
			"give --addr with https, or call the node from its own machine")
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	settings, err := n.certificates()
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

// token returns the token that says who calls, empty if there is none.
func (n *Node) token() (string, error) {
	if n.tokenFile == "" {
		return strings.TrimSpace(os.Getenv("QUOTAD_TOKEN")), nil
	}
	token, err := trust.Token(n.tokenFile)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	return token, nil
}

// certificates reads the certificates. It returns nil if none are given.
func (n *Node) certificates() (*tls.Config, error) {
	if (n.trust.Cert == "") != (n.trust.Key == "") {
		return nil, errors.New("--cert and --key (QUOTAD_CERT and QUOTAD_KEY) are of no use without each other; give both")
	}
	return n.trust.TLS(func(setting string) string {
		return "--" + setting + " or QUOTAD_" + strings.ToUpper(setting)
	})
}
