// Package remote calls a node over HTTP, for the commands about a running node: its API as a
// caller, or its admin listener as an operator. Its errors say what to do, and carry their exit
// code.
package remote

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/policy/trust"
	"github.com/quotad/quotad/region/front/asjson"
)

// Node is a node that a command calls.
type Node struct {
	listener  string // the setting of the listener that is called
	addr      string
	timeout   time.Duration
	tokenFile string
	trust     trust.Files
	given     *pflag.FlagSet // the command's
	settled   bool
}

// CallerFlags adds the flags of a command that calls the API of a node.
func (n *Node) CallerFlags(cmd *cobra.Command) {
	n.flags(cmd, apiListener, "http://127.0.0.1:8080", "address of a node's HTTP API")
}

// OperatorFlags adds the flags of a command that calls the admin listener of a node.
func (n *Node) OperatorFlags(cmd *cobra.Command) {
	n.flags(cmd, adminListener, "http://127.0.0.1:8083", "address of a node's admin listener")
}

// The settings of the listeners that commands call.
const (
	apiListener   = "listen.http"
	adminListener = "listen.admin"
)

func (n *Node) flags(cmd *cobra.Command, listener, addr, what string) {
	n.listener = listener
	f := cmd.Flags()
	n.given = f
	f.StringVar(&n.addr, "addr", addr, what+" ("+listener+"), host:port or a URL; https:// for TLS; the variable "+
		addressVariables[listener]+" goes before the default")
	f.DurationVar(&n.timeout, "timeout", 5*time.Second, "how long to wait for the answer")
	f.StringVar(&n.tokenFile, "token-file", "",
		"file of the token that says who calls (default: the variable QUOTAD_TOKEN)")
	f.StringVar(&n.trust.CA, "ca", "",
		"certificates of the authorities that the node's may be of (default: the variable QUOTAD_CA, or those of the system)")
	f.StringVar(&n.trust.Cert, "cert", "", "certificate that says who calls (default: the variable QUOTAD_CERT)")
	f.StringVar(&n.trust.Key, "key", "", "key of --cert (default: the variable QUOTAD_KEY)")
}

// Answer is the answer of a node, or says why there is none.
type Answer struct {
	Code int
	Body []byte
	from *Node
	err  error // there is no answer
}

// maxAnswerBytes bounds the part of an answer that is read. The largest answer is the status of a
// large cluster.
const maxAnswerBytes = 4 << 20

// Get sends a GET request for a path.
func (n *Node) Get(ctx context.Context, path string, query url.Values) Answer {
	return n.call(ctx, http.MethodGet, path, query, "", nil)
}

// Post sends a POST request with a body in JSON.
func (n *Node) Post(ctx context.Context, path string, request any) Answer {
	body, err := json.Marshal(request)
	if err != nil {
		return Answer{err: err}
	}
	return n.call(ctx, http.MethodPost, path, nil, "application/json", body)
}

// PostYAML sends a POST request with a body in YAML.
func (n *Node) PostYAML(ctx context.Context, path string, query url.Values, body []byte) Answer {
	return n.call(ctx, http.MethodPost, path, query, "application/yaml", body)
}

// call sends a request.
func (n *Node) call(
	ctx context.Context, method, path string, query url.Values, kind string, body []byte,
) Answer {
	n.settle()
	u, err := url.Parse(n.addr)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return Answer{err: exit.Usage(fmt.Errorf(
			"%q is not the address of a node; write it like 127.0.0.1:8083 or https://node.example:8083",
			n.addr))}
	}
	if n.timeout <= 0 {
		return Answer{err: exit.Usage(fmt.Errorf(
			"--timeout %s leaves no time; write it like 5s", n.timeout))}
	}
	ctx, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	at := u.JoinPath(path)
	at.RawQuery = query.Encode()
	q, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return Answer{err: exit.Usage(err)}
	}
	if body != nil {
		q.Header.Set("Content-Type", kind)
	}
	client, err := n.authorize(q)
	if err != nil {
		return Answer{err: exit.Usage(err)}
	}
	defer client.CloseIdleConnections()
	response, err := client.Do(q)
	if err != nil {
		return Answer{err: n.unreachable(err)}
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return Answer{err: n.unreachable(err)}
	}
	return Answer{Code: response.StatusCode, Body: answer, from: n}
}

func (n *Node) unreachable(err error) error {
	if unknown := (x509.UnknownAuthorityError{}); errors.As(err, &unknown) {
		return exit.Unreachable(fmt.Errorf("the node's certificate is not trusted: %w; "+
			"if its authority is your own, name that authority's certificate: --ca FILE", err))
	}
	return exit.Unreachable(fmt.Errorf("no answer from the node: %w; "+
		"check that it runs and that --addr is its %s, with https if it has TLS", err, n.listener))
}

// Into decodes the answer. It fails if the node did not do what was asked, or the decoded answer is
// not whole, and the error then says what the node said, or why there is no answer.
func (a Answer) Into(answer any, whole func() bool) error {
	if a.Code != http.StatusOK || json.Unmarshal(a.Body, answer) != nil || !whole() {
		return a.Refusal()
	}
	return nil
}

// Message decodes the answer into a message. It fails as Into does, also if the answer has no such
// member, which all of its kind have.
func (a Answer) Message(m proto.Message, member string) error {
	var members map[string]json.RawMessage
	return a.Into(&members, func() bool {
		return members[member] != nil && asjson.Unmarshal(a.Body, m) == nil
	})
}

// Refusal returns the error for an answer that is not the wanted one.
func (a Answer) Refusal() error {
	if a.err != nil {
		return a.err
	}
	var problem struct {
		Detail string `json:"detail"`
	}
	if json.Unmarshal(a.Body, &problem) != nil || problem.Detail == "" {
		return fmt.Errorf("%s answered %d %s, which no quotad node answers: "+
			"check that --addr is the address of a node (%s), with https if it has TLS",
			a.from.addr, a.Code, http.StatusText(a.Code), a.from.listener)
	}
	err := fmt.Errorf("the node answered %d: %s", a.Code, show.Detail(problem.Detail))
	switch {
	case a.Code == http.StatusServiceUnavailable:
		return exit.Unreachable(fmt.Errorf("%w; try again, and see quotad status", err))
	case a.Code == http.StatusUnauthorized:
		return fmt.Errorf("%w; give --token-file, QUOTAD_TOKEN or --cert", err)
	case a.Code == http.StatusConflict, a.Code == http.StatusForbidden:
		return err // the request is right but cannot be met
	case a.Code >= 400 && a.Code < 500 && a.Code != http.StatusNotFound:
		return exit.Usage(fmt.Errorf("%w; correct the request", err))
	}
	return err
}

// Show writes the answer as indented JSON, or in words.
func (a Answer) Show(w io.Writer, output string, inWords func(io.Writer) error) error {
	if output != "json" {
		return inWords(w)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(a.Body), "", "  "); err != nil {
		return fmt.Errorf("the node's answer is not JSON: %w", err)
	}
	_, err := fmt.Fprintln(w, show.VisibleJSON(b.String()))
	return err
}
