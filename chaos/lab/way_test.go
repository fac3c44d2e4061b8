//go:build !race

package lab

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/store"
)

// atNoon is a server and a node whose clocks show the same time, which the test may change.
func atNoon(replid string) (now *quantity.StoreTime, server *Twin, node func() *store.Store) {
	now = new(quantity.StoreTime)
	*now = quantity.StoreTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMicro())
	server = NewTwin(func() quantity.StoreTime { return *now }, replid)
	return now, server, func() *store.Store {
		s, _ := server.Connect(func() time.Time { return time.UnixMicro(int64(*now)) })
		return s
	}
}

func usedAt(t *testing.T, m *store.Store, id string) quantity.Units {
	t.Helper()
	r, err := m.Inspect(t.Context(), algorithms.Inspect{Fence: under(epoch),
		Target: algorithms.Target{Key: store.BucketKey(store.Whole, id), Terms: terms(10)}})
	if err != nil {
		t.Fatalf("inspect: %+v, %v", r, err)
	}
	return r.Used
}

// TestTwinFailsOver: a promoted copy of a server's data is known to be old. Nothing runs there, and the
// store is opened anew as after a loss.
func TestTwinFailsOver(t *testing.T) {
	now, server, _ := atNoon("a")
	m, way := server.Connect(func() time.Time { return time.UnixMicro(int64(*now)) })
	opened := mustOpen(t, m, first)
	replica := server.Replica("b")
	*now++ // no two answers of a Redis have one time
	charged := m.Decide(t.Context(), []algorithms.Decide{charge("k", 10, 3)})[0]
	if charged.Err != nil || admitted(charged.Value) != 1 {
		t.Fatalf("decide: %+v", charged)
	}
	way.SetServer(replica)
	if r := m.Decide(t.Context(), []algorithms.Decide{charge("k", 10, 1)})[0]; !errors.Is(r.Err,
		store.ErrUnknownStore) {
		t.Errorf("the replica's answer counts: %+v", r)
	}
	ran := replica.Ledger(store.Whole).Inspect(charged.Value.Now,
		algorithms.Inspect{Target: algorithms.Target{Key: store.BucketKey(store.Whole, "k"),
			Terms: terms(10)},
			Fence: algorithms.Fence{Generation: opened.Generation, Epoch: epoch, Node: "judge",
				Clock: charged.Value.Now}})
	if ran.Used != 0 {
		t.Errorf("%d units are charged on the replica", ran.Used)
	}
	again := mustOpen(t, m, store.Opening{Region: "eu", Epoch: epoch,
		LastGeneration: opened.Generation})
	if !again.Lost || again.Generation <= opened.Generation {
		t.Errorf("opened %+v after %+v: a loss is not noticed", again, opened)
	}
	if got := server.Ledger(store.Whole).Generation; got != opened.Generation {
		t.Errorf("the old server is under generation %d: it shares what it holds with its replica",
			got)
	}
}

// TestTwinUnreached: some of the failing round trips run, and each error says that it may have run.
func TestTwinUnreached(t *testing.T) {
	cases := []struct {
		name string
		fail func(*Twin)
		ran  bool // as far as the caller can know
		used quantity.Units
	}{
		{"down", func(s *Twin) { s.SetDown(true) }, false, 0},
		{"lost on the way", func(s *Twin) { s.FailNext(1) }, true, 0},
		{"the reply lost", func(s *Twin) { s.LoseReply(1) }, true, 3},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, server, node := atNoon("a")
			m := node()
			mustOpen(t, m, first)
			c.fail(server)
			var e *store.Error
			r := m.Decide(t.Context(), []algorithms.Decide{charge("k", 10, 3)})[0]
			if !errors.As(r.Err, &e) || !store.Unreached(r.Err) || e.Ran != c.ran ||
				admitted(r.Value) != 0 {
				t.Errorf("%+v, want an error of which ran is %v", r, c.ran)
			}
			server.SetDown(false)
			if used := usedAt(t, m, "k"); used != c.used {
				t.Errorf("%d units are charged, want %d", used, c.used)
			}
		})
	}
}

// TestTwinClosed: after Close nothing runs any more, and nothing is answered.
func TestTwinClosed(t *testing.T) {
	_, _, node := atNoon("a")
	m := node()
	mustOpen(t, m, first)
	suite.Must(t, m.Close())
	if r := m.Decide(t.Context(), []algorithms.Decide{charge("k", 10, 1)})[0]; r.Err == nil {
		t.Error("a closed way answers")
	}
	if _, err := m.Eviction(t.Context()); err == nil {
		t.Error("a closed way reaches its server")
	}
}

// TestTwinForgets: the number of remembered requests does not grow without bound, and none is
// forgotten too early.
func TestTwinForgets(t *testing.T) {
	now, server, node := atNoon("a")
	m := node()
	mustOpen(t, m, first)
	request := func(i int) algorithms.Decided {
		c := charge("k", 1<<40, 1)
		c.Once = store.OnceKey(store.Whole, fmt.Sprint(i))
		return m.Decide(t.Context(), []algorithms.Decide{c})[0].Value
	}
	const aMinutes = 60 // remembered requests at a time
	for i := range 5 * fewestRemembered {
		*now += quantity.StoreTime(second)
		if d := request(i); d.Repeated || admitted(d) != 1 {
			t.Fatalf("request %d: %+v", i, d)
		}
		if i >= aMinutes && i%100 == 0 && (!request(i-aMinutes+1).Repeated ||
			request(i-aMinutes).Repeated) {
			t.Fatalf("request %d: not those of the last minute are remembered", i)
		}
		if n := len(server.held[store.Whole].ends); n > 4*aMinutes+fewestRemembered {
			t.Fatalf("after %d requests %d are remembered", i, n)
		}
	}
}

// TestTwinRepeats: two runs of the same calls have the same results, including secrets.
func TestTwinRepeats(t *testing.T) {
	run := func() string {
		_, server, node := atNoon("a")
		m, mate := node(), node()
		opened := mustOpen(t, m, first)
		secret := m.Secret()
		server.Restart()
		again := mustOpen(t, mate, store.Opening{Region: "eu", Epoch: epoch,
			LastGeneration: opened.Generation})
		if mate.Secret() == secret || server.Replid() == "a" {
			t.Errorf("secret %q again, of a server %q", secret, server.Replid())
		}
		return fmt.Sprint(opened, again, secret, mate.Secret(), server.Replid())
	}
	if a, b := run(), run(); a != b {
		t.Errorf("%s\nand then\n%s", a, b)
	}
}

// BenchmarkTwinDecide measures a decision on one bucket.
func BenchmarkTwinDecide(b *testing.B) {
	_, _, node := atNoon("a")
	m := node()
	if _, err := m.Open(b.Context(), first); err != nil {
		b.Fatal(err)
	}
	c := []algorithms.Decide{charge("k", 1<<40, 1)}
	b.ReportAllocs()
	for b.Loop() {
		m.Decide(b.Context(), c)
	}
}

// TestTwinUnderLoad: a server runs one call after the other. Round trips that are not done in time
// still run.
func TestTwinUnderLoad(t *testing.T) {
	_, server, node := atNoon("a")
	m := node()
	mustOpen(t, m, first)
	var elapsed time.Duration
	server.SetServers(func() time.Duration { return elapsed }, Server{Each: 20 * time.Millisecond})
	call := []algorithms.Decide{charge("k", 10, 1)}
	for n, late := range []bool{false, false, true} { // done after 20, 40 and 60 ms
		if r := m.Decide(t.Context(), call)[0]; store.Late(r.Err) != late ||
			(r.Err == nil) == late {
			t.Errorf("call %d: %v, want late %v", n, r.Err, late)
		}
	}
	elapsed = 50 * time.Millisecond
	if r := m.Decide(t.Context(), call)[0]; r.Err != nil || r.Value.Buckets[0].Used != 4 {
		t.Errorf("used %+v, %v: what was late is charged too", r.Value.Buckets, r.Err)
	}
}

// TestTwinOfSeveralServers: each server of a divided store takes its own time and has a name of its own. A
// call for several takes as long as the slowest, and one that is silent takes nothing from the others.
func TestTwinOfSeveralServers(t *testing.T) {
	shards := store.Divided(3)
	now := quantity.StoreTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMicro())
	server := NewDividedTwin(func() quantity.StoreTime { return now }, "a", shards)
	m, way := server.Connect(func() time.Time { return time.UnixMicro(int64(now)) })
	mustOpen(t, m, first)
	var elapsed time.Duration
	to := map[int]time.Duration{} // how long round trips to each server took
	way.Takes(func(servers []int, d time.Duration) {
		elapsed += d
		for _, i := range servers {
			to[i] += d
		}
	})
	far, slow := Server{Far: time.Millisecond, Each: time.Millisecond}, Server{Each: 20 * time.Millisecond}
	server.SetServers(func() time.Duration { return elapsed }, far, slow)
	if names := m.ServerNames(t.Context()); names[0] != names[2] || names[0] == names[1] {
		t.Errorf("the first and the third shard are on one server: %v", names)
	}
	asks := func(what string, takes time.Duration, fails []bool, of ...int) {
		t.Helper()
		var calls []algorithms.Decide
		for _, i := range of {
			c := charge("k", 10, 1)
			c.Buckets[0].Key = store.BucketKey(shards[i], "k")
			calls = append(calls, c)
		}
		begun := elapsed
		for n, r := range m.Decide(t.Context(), calls) {
			if failed := r.Err != nil; failed != fails[n] || failed != store.Late(r.Err) {
				t.Errorf("%s: call %d: %v", what, n, r.Err)
			}
		}
		if took := elapsed - begun; took != takes {
			t.Errorf("%s: it takes %v, want %v", what, took, takes)
		}
	}
	asks("two shards of one server", 4*time.Millisecond, []bool{false, false}, 0, 2)
	asks("the other server", 20*time.Millisecond, []bool{false}, 1)
	asks("both", 22*time.Millisecond, []bool{false, false}, 0, 1)
	if to[0] != 26*time.Millisecond || to[1] != 42*time.Millisecond {
		t.Errorf("round trips took %v", to)
	}
	slow.Silent = true
	server.SetServers(func() time.Duration { return elapsed }, far, slow)
	asks("one is silent", store.DefaultTimeout, []bool{true}, 1)
	asks("the other", 3*time.Millisecond, []bool{false}, 0)
	if m.Reach(t.Context(), shards[1]) == nil || m.Reach(t.Context(), shards[2]) != nil {
		t.Error("not the second server alone is silent")
	}
}
