// Package remote calls a node over its HTTP API, for the commands about a running node. Its errors
// say what to do, and carry their exit code.
package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/show"
)

// Node is a node that a command calls.
type Node struct {
	addr    string
	timeout time.Duration
}

// Flags adds the flags for the node's address and the timeout.
func (n *Node) Flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&n.addr, "addr", "http://127.0.0.1:8080", "HTTP address of a node")
	f.DurationVar(&n.timeout, "timeout", 5*time.Second, "how long to wait for the answer")
}

// Answer is the answer of a node.
type Answer struct {
	Code int
	Body []byte
	from *Node
}

// maxAnswerBytes bounds the part of an answer that is read. The largest answer is the status of a
// large cluster.
const maxAnswerBytes = 4 << 20

// Get sends a GET request for a path.
func (n *Node) Get(ctx context.Context, path string, query url.Values) (Answer, error) {
	return n.call(ctx, http.MethodGet, path, query, nil)
}

// Post sends a POST request with a body in JSON.
func (n *Node) Post(ctx context.Context, path string, request any) (Answer, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return Answer{}, err
	}
	return n.call(ctx, http.MethodPost, path, nil, body)
}

// call sends a request. The error says that there is no answer.
func (n *Node) call(
	ctx context.Context, method, path string, query url.Values, body []byte,
) (Answer, error) {
	u, err := url.Parse(n.addr)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return Answer{}, exit.Usage(fmt.Errorf(
			"--addr %q is not the address of a node; write it like http://127.0.0.1:8080", n.addr))
	}
	if n.timeout <= 0 {
		return Answer{}, exit.Usage(fmt.Errorf(
			"--timeout %s leaves no time; write it like 5s", n.timeout))
	}
	ctx, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	at := u.JoinPath(path)
	at.RawQuery = query.Encode()
	q, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return Answer{}, exit.Usage(err)
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(q)
	if err != nil {
		return Answer{}, unreachable(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return Answer{}, unreachable(err)
	}
	return Answer{Code: response.StatusCode, Body: answer, from: n}, nil
}

func unreachable(err error) error {
	return exit.Unreachable(fmt.Errorf("no answer from the node: %w; "+
		"check that it runs and that --addr is its HTTP address (listen.http)", err))
}

// Into decodes the answer. It fails if the node did not do what was asked, or the decoded answer is
// not whole, and the error then says what the node said.
func (a Answer) Into(answer any, whole func() bool) error {
	if a.Code != http.StatusOK || json.Unmarshal(a.Body, answer) != nil || !whole() {
		return a.Refusal()
	}
	return nil
}

// Refusal returns the error for an answer that is not the wanted one.
func (a Answer) Refusal() error {
	var problem struct {
		Detail string `json:"detail"`
	}
	if json.Unmarshal(a.Body, &problem) != nil || problem.Detail == "" {
		return fmt.Errorf("%s answered %d %s, which no quotad node answers: "+
			"check that --addr is the HTTP address of a node (listen.http)",
			a.from.addr, a.Code, http.StatusText(a.Code))
	}
	err := fmt.Errorf("the node answered %d: %s", a.Code, show.Detail(problem.Detail))
	switch {
	case a.Code == http.StatusServiceUnavailable:
		return exit.Unreachable(fmt.Errorf("%w; try again, and see quotad status", err))
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
