package bench

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
)

func TestEntries(t *testing.T) {
	for text, want := range map[string][]entry{
		New().Compare.Descriptor:  {{"key", "{key}"}},
		"path=/a=b,account={key}": {{"path", "/a=b"}, {"account", "{key}"}},
		"key=a-{key}-{key}":       {{"key", "a-{key}-{key}"}},
	} {
		got, err := (&Compare{Descriptor: text}).entries()
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "key", "={key}", "a=b", "a=,key={key}", "key={key},",
		"key={key}\xff", "key={key}" + strings.Repeat("k", maxEntryLength),
		strings.Repeat("key={key},", maxEntries) + "key={key}"} {
		if got, err := (&Compare{Descriptor: bad}).entries(); err == nil {
			t.Errorf("%q has the entries %v", bad, got)
		}
	}
}

// TestEnvoyRequest: each limit of each key has a descriptor with a value of its own.
func TestEnvoyRequest(t *testing.T) {
	e := &envoy{"shop", []entry{{"path", "/buy"}, {"account", "<{key}>"}}, 2}
	m := e.request([]int{7, 8})
	if m.Domain != "shop" || len(m.Descriptors) != 4 {
		t.Fatalf("got %v", m)
	}
	for i, want := range []string{"<k1000007>", "<k1000007/2>", "<k1000008>", "<k1000008/2>"} {
		its := m.Descriptors[i].Entries
		if len(its) != 2 || its[0].Key != "path" || its[0].Value != "/buy" ||
			its[1].Key != "account" || its[1].Value != want {
			t.Errorf("descriptor %d: %v", i, its)
		}
	}
}

// answers is a client of a service with an answer to every call.
type answers struct {
	answer *ratelimit.RateLimitResponse
	err    error
}

// ShouldRateLimit implements the client.
func (a answers) ShouldRateLimit(context.Context, *ratelimit.RateLimitRequest,
	...grpc.CallOption) (*ratelimit.RateLimitResponse, error) {
	return a.answer, a.err
}

// answer returns an answer with the given codes: the overall one, and one for each descriptor.
func answer(overall ratelimit.RateLimitResponse_Code,
	codes ...ratelimit.RateLimitResponse_Code) *ratelimit.RateLimitResponse {
	r := &ratelimit.RateLimitResponse{OverallCode: overall}
	for _, code := range codes {
		r.Statuses = append(r.Statuses,
			&ratelimit.RateLimitResponse_DescriptorStatus{Code: code})
	}
	return r
}

const (
	unknown   = ratelimit.RateLimitResponse_UNKNOWN
	ok        = ratelimit.RateLimitResponse_OK
	overLimit = ratelimit.RateLimitResponse_OVER_LIMIT
)

// TestEnvoyDenials: a decision about a key is denied if one of its descriptors is over its limit,
// and all are if the answer does not say which.
func TestEnvoyDenials(t *testing.T) {
	for _, c := range []struct {
		name         string
		keys, limits int
		answer       *ratelimit.RateLimitResponse
		err          error
		denied       int64
		failed       bool
	}{
		{"admitted", 1, 1, answer(ok, ok), nil, 0, false},
		{"denied", 1, 1, answer(overLimit, overLimit), nil, 1, false},
		{"the second limit denies", 1, 2, answer(overLimit, ok, overLimit), nil, 1, false},
		{"both limits deny", 1, 2, answer(overLimit, overLimit, overLimit), nil, 1, false},
		{"two of three keys", 3, 1, answer(overLimit, overLimit, ok, overLimit), nil, 2, false},
		{"the second of two keys", 2, 2, answer(overLimit, ok, ok, ok, overLimit), nil, 1, false},
		{"it does not say which", 3, 1, answer(overLimit), nil, 3, false},
		{"nor here", 2, 1, answer(overLimit, ok, ok), nil, 2, false},
		{"no statuses", 3, 1, answer(ok), nil, 0, false},
		{"no decision", 1, 1, answer(unknown), nil, 0, true},
		{"no answer", 1, 1, nil, errors.New("gone"), 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &envoy{"bench", []entry{{"key", keyMark}}, c.limits}
			call := e.prepare(answers{c.answer, c.err})(make([]int, c.keys))
			denied, err := call(t.Context())
			if (err != nil) != c.failed || denied != c.denied {
				t.Errorf("%d denied, %v; want %d", denied, err, c.denied)
			}
		})
	}
}

// TestEnvoySample: a server is measured only if it admits the first request.
func TestEnvoySample(t *testing.T) {
	e := &envoy{"bench", []entry{{"key", keyMark}}, 1}
	tells := answer(ok, ok)
	tells.Statuses[0].CurrentLimit = &ratelimit.RateLimitResponse_RateLimit{RequestsPerUnit: 1}
	for _, c := range []struct {
		name   string
		of     answers
		limit  bool
		failed string
	}{
		{"a limit", answers{answer: tells}, true, ""},
		{"none", answers{answer: answer(ok, ok)}, false, ""},
		{"denied", answers{answer: answer(overLimit, overLimit)}, false, "denied the first request"},
		{"no decision", answers{answer: answer(unknown)}, false, "UNKNOWN"},
		{"no answer", answers{err: errors.New("gone")}, false, "gone; check that --compare"},
	} {
		t.Run(c.name, func(t *testing.T) {
			limit, err := e.sample(t.Context(), c.of)
			if limit != c.limit || (err != nil) != (c.failed != "") ||
				err != nil && !strings.Contains(err.Error(), c.failed) {
				t.Errorf("tells a limit: %v, %v", limit, err)
			}
		})
	}
}
