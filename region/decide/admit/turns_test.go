package admit

import (
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// Each denied request is told a turn of its own, by all fields the same. Whoever only looks takes
// none, and a request that several limits deny takes that of the one it waits for longest.
func TestDeniedRequestsAreToldTurns(t *testing.T) {
	const tokens = "key: [account], burst: 10, window: 1s, algorithm: token_bucket"
	counted(t, []string{"here: {weight: 1}"}, []string{"name: a, limit: 10, " + tokens,
		"name: b, match: {slow: yes}, limit: 5, " + tokens}, func(t *testing.T, n *Limiter, _ *countedServer) {
		ask := func(q Request, peek bool) Decision {
			t.Helper()
			decide := n.Check
			if peek {
				decide = n.Peek
			}
			d, err := decide(t.Context(), q)
			suite.Must(t, err)
			for i, s := range d.Limits {
				if s.Limit == d.Limit && s.RetryAfter != d.RetryAfter {
					t.Errorf("limit %d of the decision says %v, and the decision %v", i, s.RetryAfter, d.RetryAfter)
				}
			}
			return d
		}
		both := request("1")
		both.Descriptors["slow"] = "yes"
		all := both
		if all.Cost = 10; !ask(all, false).Allowed {
			t.Fatal("the burst is denied")
		}
		for i, c := range []struct {
			q    Request
			peek bool
			want time.Duration
		}{
			{request("1"), false, 100 * time.Millisecond},
			{request("1"), true, 200 * time.Millisecond},
			{request("1"), true, 200 * time.Millisecond},
			{request("1"), false, 200 * time.Millisecond},
			{lists(listOf("account", "1", 1)), false, 300 * time.Millisecond},
			{both, true, 400 * time.Millisecond},  // of a: of b, none was told
			{both, false, 400 * time.Millisecond}, // which it waits for longest, though b brings less
			{request("1"), false, 500 * time.Millisecond},
		} {
			if d := ask(c.q, c.peek); d.Allowed || d.RetryAfter != c.want {
				t.Errorf("request %d is told %v, want %v: %+v", i, d.RetryAfter, c.want, d)
			}
		}
		time.Sleep(500 * time.Millisecond)
		if d := ask(request("1"), false); !d.Allowed {
			t.Errorf("%+v after its turn", d)
		}
	})
}
