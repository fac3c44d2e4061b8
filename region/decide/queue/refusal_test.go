package queue

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/region/memory/store"
)

// A Redis that refuses scripts, here for want of memory, answers: a breaker would open and close
// again at each probe.
func TestARefusalTripsNoBreaker(t *testing.T) {
	n, operator := onProcess(t)
	if err := operator.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if a := n.asks(t, "a"); !redis.IsOOMError(a.Err) {
		t.Fatalf("answered %+v: the test shows nothing", a)
	}
	if n.Tripped(store.Whole) {
		t.Error("the breaker is tripped")
	}
}

// A key that another program wrote is refused, and all else is served.
func TestARefusalOfOneBucketIsNotEverything(t *testing.T) {
	n, operator := onProcess(t)
	key := n.of("broken").Applied[0].Target.Key
	if err := operator.Set(t.Context(), key, "another's", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if a := n.asks(t, "broken"); a.Err == nil {
			t.Fatalf("%+v: the test shows nothing", a)
		}
	}
	if n.Tripped(store.Whole) {
		t.Error("the breaker is tripped")
	}
	if a := n.asks(t, "a"); a.Err != nil {
		t.Errorf("another bucket: %+v", a)
	}
}

// onProcess returns a queue at work on a redis-server, and an operator's way to
// that.
func onProcess(t *testing.T) (node, *redis.Client) {
	t.Helper()
	server := fixtures.Process(t)
	s, err := store.Connect(store.Options{URL: server.URL, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	n := on(t, s, "name: hour, limit: 100, window: 1h")
	n.opened(t)
	return n, fixtures.Operator(t, server)
}

// asks has the store decide a request of an account.
func (n node) asks(t *testing.T, account string) Answer {
	t.Helper()
	a, err := n.Decide(t.Context(), ask(n.rules, account).Waits(time.Now(), time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return a
}
