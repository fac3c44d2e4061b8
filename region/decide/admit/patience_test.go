package admit

import (
	"context"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/documents"
)

// A request that the store leaves without an answer is decided without it at its deadline, not
// before and not later.
func TestDecidedAtTheDeadline(t *testing.T) {
	for behaviour, want := range map[string]Reason{"deny": StoreFailure, "local": StoreFailureLocal,
		"allow": StoreFailureAllowed} {
		for _, deadline := range []time.Duration{50 * time.Millisecond, time.Second} {
			bubble.Test(t, func(t *testing.T) {
				s, _ := lab.NewTwin(now, "a").ConnectWithin(deadline, time.Now)
				n := on(t, s, 1, documents.Parse(t, 1, hereAndThere,
					"name: minute, limit: 100, window: 1m, lending_limit: 0.5, on_store_failure: "+
						behaviour))
				begun := time.Now()
				d, err := n.Check(t.Context(), request("a"))
				if err != nil || d.Reason != want || time.Since(begun) != deadline {
					t.Errorf("%s: after %v, deadline %v: %+v, %v", behaviour, time.Since(begun),
						deadline, d, err)
				}
			})
		}
	}
}

// A request that the store leaves without an answer is decided without it so early that its caller
// still hears the decision.
func TestDecidedBeforeTheCallerGivesUp(t *testing.T) {
	const ms = time.Millisecond
	for behaviour, want := range map[string]Reason{"deny": StoreFailure, "local": StoreFailureLocal,
		"allow": StoreFailureAllowed} {
		for patience, decided := range map[time.Duration]time.Duration{
			20 * ms: 15 * ms, 10 * ms: 5 * ms, 4 * ms: 2 * ms, 54 * ms: 49 * ms, 55 * ms: 50 * ms, time.Minute: 50 * ms} {
			bubble.Test(t, func(t *testing.T) {
				s, _ := lab.NewTwin(now, "a").ConnectWithin(50*ms, time.Now)
				n := on(t, s, 1, documents.Parse(t, 1, hereAndThere,
					"name: minute, limit: 100, window: 1m, lending_limit: 0.5, on_store_failure: "+
						behaviour))
				for name, check := range map[string]func(context.Context) (Decision, error){
					"alone": func(ctx context.Context) (Decision, error) { return n.Check(ctx, request("a")) },
					"in a batch": func(ctx context.Context) (Decision, error) {
						all, err := n.CheckBatch(ctx, []Request{request("a")})
						return append(all, Decision{})[0], err
					},
				} {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					begun := time.Now()
					d, err := check(ctx)
					if took := time.Since(begun); err != nil || d.Reason != want || took != decided {
						t.Errorf("%s, %s, %v: decided after %v: %+v, %v", behaviour, name, patience, took, d, err)
					}
					cancel()
				}
			})
		}
	}
}
