package main

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

// remote is a node that a command talks to, over its HTTP API.
type remote struct {
	addr    string
	timeout time.Duration
}

// flags adds the flags that say where the node is.
func (r *remote) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.addr, "addr", "http://127.0.0.1:8080", "HTTP address of a node")
	cmd.Flags().DurationVar(&r.timeout, "timeout", 5*time.Second, "how long to wait for the answer")
}

// mostAnswerBytes bounds what is read of an answer; the largest is the status of a large cluster.
const mostAnswerBytes = 4 << 20

// get asks the node for what stands at a path. The error says that there was no answer, and is coded.
func (r *remote) get(ctx context.Context, path string, query url.Values) (code int, answer []byte, err error) {
	return r.call(ctx, http.MethodGet, path, query, nil)
}

// post sends the node a request as JSON. The error says that there was no answer, and is coded.
func (r *remote) post(ctx context.Context, path string, request any) (code int, answer []byte, err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return 0, nil, err
	}
	return r.call(ctx, http.MethodPost, path, nil, body)
}

func (r *remote) call(ctx context.Context, method, path string, query url.Values, body []byte) (code int, answer []byte, err error) {
	u, err := url.Parse(r.addr)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return 0, nil, exit.Usage(fmt.Errorf("--addr %q is not the address of a node; write it like http://127.0.0.1:8080", r.addr))
	}
	if r.timeout <= 0 {
		return 0, nil, exit.Usage(fmt.Errorf("--timeout %s leaves no time; write it like 5s", r.timeout))
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	at := u.JoinPath(path)
	at.RawQuery = query.Encode()
	q, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, exit.Usage(err)
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, nil, r.unreachable(err)
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, mostAnswerBytes))
	if err != nil {
		return 0, nil, r.unreachable(err)
	}
	return response.StatusCode, answer, nil
}

func (r *remote) unreachable(err error) error {
	return exit.Unreachable(fmt.Errorf("no answer from the node: %w; check that it runs and that --addr is its HTTP address (listen.http)", err))
}

// refused is what an answer other than the wanted one means.
func (r *remote) refused(code int, answer []byte) error {
	var problem struct {
		Detail string `json:"detail"`
	}
	if json.Unmarshal(answer, &problem) != nil || problem.Detail == "" {
		return fmt.Errorf("%s answered %d %s, which is not quotad's way: check that --addr is the HTTP address of a node (listen.http)",
			r.addr, code, http.StatusText(code))
	}
	err := fmt.Errorf("the node answered %d: %s", code, show.Detail(problem.Detail))
	switch {
	case code == http.StatusServiceUnavailable:
		return exit.Unreachable(fmt.Errorf("%w; try again, and see quotad status", err))
	case code == http.StatusConflict, code == http.StatusForbidden: // the request is right, and cannot be met
		return err
	case code >= 400 && code < 500 && code != http.StatusNotFound:
		return exit.Usage(fmt.Errorf("%w; correct the request", err))
	}
	return err
}

// indented lays JSON out for people.
func indented(w io.Writer, answer []byte) error {
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(answer), "", "  "); err != nil {
		return fmt.Errorf("the node's answer is not JSON: %w", err)
	}
	_, err := fmt.Fprintln(w, show.VisibleJSON(b.String()))
	return err
}

// milliseconds reads a duration as the API writes it.
func milliseconds(ms float64) time.Duration {
	return time.Duration(ms * float64(time.Millisecond)).Round(time.Millisecond)
}
