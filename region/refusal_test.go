package region

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/region/store"
)

// A Redis that refuses scripts, here for want of memory, answers: a breaker would open and close again at each probe.
func TestARefusalTripsNoBreaker(t *testing.T) {
	s := process(t)
	n := unstarted(t, 1, document(t, 1, hereAndThere, "name: hour, limit: 100, window: 1h"))
	st, err := store.Connect(store.Options{URL: s.URL, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	r := n.rules.Load()
	if _, err := st.Open(t.Context(), store.Opening{Region: "here", Epoch: r.Epoch, Bootstrap: true}); err != nil {
		t.Fatal(err)
	}
	n.batcher.store, n.batcher.breakers = st, n.breakers
	if err := operator(t, s).ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	answer := make(chan answered, 1)
	n.batcher.decide(t.Context(), []waiting{{rules: r, applied: r.Match(asked(request("a"))), cost: 1, commit: true, answer: answer}})
	if a := <-answer; !redis.IsOOMError(a.err) {
		t.Fatalf("answered %+v: the test shows nothing", a)
	}
	if n.breakers.tripped(store.Whole) {
		t.Error("the breaker is tripped")
	}
}
