//go:build envoy

package envoy

import (
	"fmt"
	"net/http"
	"testing"
)

// bounded is what clients see of the bound while quotad is gone.
type bounded struct {
	denied, problems, retryAfter int
}

// TestDefaultsBoundNothing: without one of the recipe's lines thirty addresses that each try to sign
// in 15 times are not denied, or not told what they should be. quotad is gone.
func TestDefaultsBoundNothing(t *testing.T) {
	const denied = 30 * (15 - 12) // at most: the bound has 12 tokens, and more come
	for name, c := range map[string]struct {
		edit edit
		want func(b bounded) bool
	}{
		"as it is": {edit{"stat_prefix: bound", "stat_prefix: bound"}, func(b bounded) bool {
			return b.denied > 0 && b.denied <= denied && b.problems == b.denied && b.retryAfter == b.denied
		}},
		"filter_enabled is 0 % by default": {found(t, ` *filter_enabled: .*\n`, ""),
			func(b bounded) bool { return b.denied == 0 }},
		"filter_enforced is 0 % by default": {found(t, ` *filter_enforced: .*\n`, ""),
			func(b bounded) bool { return b.denied == 0 }},
		"max_dynamic_descriptors is 20 by default": {found(t, ` *max_dynamic_descriptors: .*\n`, ""),
			func(b bounded) bool { return b.denied == 0 }},
		"no Retry-After by default": {found(t, ` *enable_retry_after_header: .*\n`, ""),
			func(b bounded) bool { return b.denied > 0 && b.retryAfter == 0 }},
		"no response flag": {found(t, `(?s)status_code_filter:.*?quotad.denied}}`, "response_flag_filter: {flags: [RL]}"),
			func(b bounded) bool { return b.denied > 0 && b.problems == 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			p := startEnvoy(t, "envoy.yaml", startApp(t), []string{freeAddress(t)}, c.edit)
			if got := p.signIn(t); !c.want(got) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// signIn has thirty addresses try to sign in by turns, 15 times each.
func (p *proxy) signIn(t *testing.T) (b bounded) {
	t.Helper()
	var clients []*client
	for i := range 30 {
		clients = append(clients, p.client(t, fmt.Sprintf("127.0.7.%d", 1+i)))
	}
	for range 15 {
		for _, c := range clients {
			a := c.get(t, "POST", "/login")
			if a.code != http.StatusTooManyRequests {
				continue
			}
			b.denied++
			if a.header.Get("Content-Type") == "application/problem+json" {
				b.problems++
			}
			if a.header.Get("Retry-After") != "" {
				b.retryAfter++
			}
		}
	}
	return b
}
