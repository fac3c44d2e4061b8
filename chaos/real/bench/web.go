package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// web calls a server over HTTP, on a connection for each caller.
type web struct {
	client *http.Client
	at     string // http://host:port
	admin  string // of the admin listener of a node, or empty
}

func newWeb(address string, callers int) *web {
	return &web{at: "http://" + address, client: &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: callers, DisableCompression: true, IdleConnTimeout: time.Minute}}}
}

// webRequest is a request as JSON.
type webRequest struct {
	Domain      string            `json:"domain"`
	Descriptors map[string]string `json:"descriptors"`
}

// webBatch is a batch of them.
type webBatch struct {
	Requests []webRequest `json:"requests"`
}

// webDecisions is the answer to a batch.
type webDecisions struct {
	Decisions []json.RawMessage `json:"decisions"`
}

// prepare makes the request of a call: by /v1/check for one key, by /v1/check-batch for more.
func (w *web) prepare(keys []int) call {
	if len(keys) == 1 {
		body := encoded(webRequestOf(keys[0]))
		return func(ctx context.Context) (int64, error) {
			answer, err := w.post(ctx, "/v1/check", body, http.StatusTooManyRequests)
			if err != nil {
				return 0, err
			}
			return denialsWeb(answer)
		}
	}
	batch := webBatch{make([]webRequest, len(keys))}
	for i, key := range keys {
		batch.Requests[i] = webRequestOf(key)
	}
	body := encoded(batch)
	return func(ctx context.Context) (int64, error) {
		answer, err := w.post(ctx, "/v1/check-batch", body)
		if err != nil {
			return 0, err
		}
		var got webDecisions
		if err := json.Unmarshal(answer, &got); err != nil {
			return 0, fmt.Errorf("read the answer to a batch: %w", err)
		}
		if len(got.Decisions) != len(keys) {
			return 0, fmt.Errorf("%d decisions for %d requests", len(got.Decisions), len(keys))
		}
		return denialsWeb(got.Decisions...)
	}
}

func webRequestOf(key int) webRequest {
	return webRequest{domain, map[string]string{descriptor: keyName(key)}}
}

// encoded returns the JSON of a request.
func encoded(request any) []byte {
	body, err := json.Marshal(request)
	if err != nil {
		panic(err) // texts and lists of them never fail to marshal
	}
	return body
}

// admits begins every decision that admits its request, and undecided is in every one that is none.
var admits, undecided = []byte(`{"allowed":true`), []byte(`"undecided":true`)

// denialsWeb is denials over HTTP.
func denialsWeb[D ~[]byte](all ...D) (denied int64, err error) {
	for _, d := range all {
		switch {
		case bytes.HasPrefix(d, admits):
		case bytes.Contains(d, undecided):
			return 0, errUndecided
		default:
			denied++
		}
	}
	return denied, nil
}

// post sends a body and returns the answer. A status other than 200, or those that are good as
// well, is an error.
func (w *web) post(ctx context.Context, path string, body []byte, good ...int) ([]byte, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, w.at+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Grpc-Timeout", callTimeoutName) // as gRPC tells how long a caller waits
	return w.do(q, good...)
}

// maxAnswer bounds the bytes of an answer that are read.
const maxAnswer = 4 << 20

func (w *web) do(q *http.Request, good ...int) ([]byte, error) {
	r, err := w.client.Do(q)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(r.Body, maxAnswer))
	if err == nil && r.StatusCode != http.StatusOK && !slices.Contains(good, r.StatusCode) {
		err = fmt.Errorf("answered %s: %s", r.Status, bytes.TrimSpace(answer))
		if r.StatusCode == http.StatusServiceUnavailable {
			err = fmt.Errorf("%w: %w", errUndecided, err)
		}
	}
	return answer, err
}

// sample asks for one decision, and returns it as it was answered.
func (w *web) sample(ctx context.Context) ([]byte, error) {
	answer, err := w.post(ctx, "/v1/check", encoded(webRequestOf(0)))
	return bytes.TrimSpace(answer), err
}

// mallocs returns how many objects a node of quotad has allocated since its start, by its metrics.
func (w *web) mallocs(ctx context.Context) (*float64, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, w.admin+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	page, err := w.do(q)
	if err != nil {
		return nil, fmt.Errorf("ask the node for its metrics: %w", err)
	}
	return parseMallocs(string(page))
}

// parseMallocs parses the line "go_memstats_mallocs_total N" of a page of metrics.
func parseMallocs(page string) (*float64, error) {
	for line := range strings.Lines(page) {
		if value, found := strings.CutPrefix(line, "go_memstats_mallocs_total "); found {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				return nil, fmt.Errorf("the node's metrics have %q for its allocations", value)
			}
			return &n, nil
		}
	}
	return nil, errors.New("the node's metrics do not tell its allocations")
}
