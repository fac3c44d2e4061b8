package tenure

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/journals"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/store"
)

// refusing is the tenure of a Redis that can be made to refuse calls. Its own clock times what it
// says about them.
type refusing struct {
	*Tenure
	operator *redis.Client
	log      bytes.Buffer
	clock    time.Time
}

func newRefusing(t *testing.T) *refusing {
	t.Helper()
	server := fixtures.Process(t)
	n := &refusing{operator: fixtures.Operator(t, server), clock: time.Unix(1_700_000_000, 0)}
	st, err := store.Connect(store.Options{URL: server.URL, Timeout: time.Minute})
	suite.Must(t, err)
	t.Cleanup(func() { _ = st.Close() })
	kept, _, err := journals.New("us", "n1")
	suite.Must(t, err)
	n.Tenure, err = New(Config{Region: "us", Node: "n1", Bootstrap: true,
		Policy: documents.Parse(t, 1, alone, "name: hour, limit: 100, window: 1h"),
		Store:  st, Journal: kept, Now: func() time.Time { return n.clock },
		Log:     slog.New(slog.NewTextHandler(&n.log, nil)),
		Changed: func(Change) {}})
	suite.Must(t, err)
	suite.Must(t, n.Open(t.Context()))
	return n
}

// asks asks the store to decide a request of an account, and returns the error. A server that
// refuses has answered, so requests still go to it.
func (n *refusing) asks(t *testing.T, account string) error {
	t.Helper()
	_, err := n.decide(t, account)
	if store.Unreached(err) {
		t.Fatalf("the server counts as out of reach: %v", err)
	}
	return err
}

// kinds returns the kinds that the status reports as refused.
func (n *refusing) kinds() (all []string) {
	for _, r := range n.Refusing() {
		all = append(all, r.Kind)
	}
	return all
}

func set(name, value string) func(context.Context, *redis.Client) error {
	return func(ctx context.Context,
		c *redis.Client) error {
		return c.ConfigSet(ctx, name, value).Err()
	}
}

func acl(rule string) func(context.Context, *redis.Client) error {
	return func(ctx context.Context, c *redis.Client) error {
		return c.Do(ctx, "ACL", "SETUSER", "default", rule).Err()
	}
}

// TestWhatTheStoreRefusesIsSaid: a Redis that answers but refuses every call makes the node not
// ready after some seconds. The log says so once a minute, with the advice and the number of calls.
// Status and metrics say it while it lasts. The first call that succeeds makes the node ready,
// without any request.
func TestWhatTheStoreRefusesIsSaid(t *testing.T) {
	for kind, c := range map[string]struct {
		breaks, mends func(context.Context, *redis.Client) error
		advice        string
	}{
		"OOM": {set("maxmemory", "1"), set("maxmemory", "0"), "raise its maxmemory"},
		"NOREPLICAS": {set("min-replicas-to-write", "1"), set("min-replicas-to-write", "0"),
			"min-replicas-to-write"},
		"READONLY": {func(ctx context.Context,
			c *redis.Client) error {
			return c.ReplicaOf(ctx, "127.0.0.1", "1").Err()
		},
			func(ctx context.Context,
				c *redis.Client) error {
				return c.ReplicaOf(ctx, "no", "one").Err()
			}, "it is a replica"},
		"NOPERM": {acl("-hset"), acl("+hset"), store.MinimalACL},
	} {
		t.Run(kind, func(t *testing.T) {
			n := newRefusing(t)
			if err := n.asks(t, "a"); err != nil || n.Ready() != nil || len(n.kinds()) != 0 {
				t.Fatalf("%v, %v, %v", err, n.Ready(), n.kinds())
			}
			suite.Must(t, c.breaks(t.Context(), n.operator))
			const calls = 40
			for range calls {
				if err := n.asks(t, "a"); err == nil {
					t.Fatal("it is done: the test shows nothing")
				}
			}
			if err := n.Ready(); err != nil {
				t.Errorf("not ready at the first refusals: %v", err)
			}
			n.clock = n.clock.Add(refusedFor)
			if err := n.Ready(); err == nil || !strings.Contains(err.Error(), kind) ||
				!strings.Contains(err.Error(), c.advice) {
				t.Errorf("ready while everything is refused: %v", err)
			}
			if got := n.kinds(); len(got) != 1 || got[0] != kind || n.Refused()[kind] != calls {
				t.Errorf("status %v, totals %v, want %d of %s", got, n.Refused(), calls, kind)
			}
			n.logged(t, 1, "kind="+kind, "calls=1 ", c.advice)
			n.clock = n.clock.Add(refusalLoggedEvery)
			_ = n.asks(t, "a")
			n.logged(t, 2, "kind="+kind, "calls=40 ", c.advice)
			n.tryOnceMore(t.Context())
			if n.Ready() == nil || len(n.kinds()) != 1 {
				t.Errorf("ready after a try that was refused: %v", n.kinds())
			}
			suite.Must(t, c.mends(t.Context(), n.operator))
			n.tryOnceMore(t.Context())
			if err := n.Ready(); err != nil {
				t.Errorf("not ready although a call was done: %v", err)
			}
			n.logged(t, 2)
			n.clock = n.clock.Add(refusalLoggedEvery)
			n.refusals.tellAll()
			n.logged(t, 3, "calls=1 ") // the try
			if got := n.kinds(); len(got) != 0 || !strings.Contains(n.log.String(),
				"the store takes calls again") {
				t.Errorf("status %v\n%s", got, &n.log)
			}
		})
	}
}

// logged wants the given number of lines about refusals, and some words in the last of them.
func (n *refusing) logged(t *testing.T, lines int, words ...string) {
	t.Helper()
	all := strings.Split(n.log.String(), "the store refuses calls")
	if len(all)-1 != lines {
		t.Fatalf("%d lines, want %d\n%s", len(all)-1, lines, &n.log)
	}
	for _, w := range words {
		if !strings.Contains(all[lines], w) {
			t.Errorf("the last line does not say %q\n%s", w, &n.log)
		}
	}
}

// TestARefusalOfOneBucketIsNotEverything: calls on a key that another program wrote are refused and
// reported, and all others are served.
func TestARefusalOfOneBucketIsNotEverything(t *testing.T) {
	n := newRefusing(t)
	key := n.Rules().Match("api", map[string]string{"account": "broken"})[0].Target.Key
	suite.Must(t, n.operator.Set(t.Context(), key, "another's", 0).Err())
	for range 10 {
		if err := n.asks(t, "broken"); err == nil {
			t.Fatal("it is done: the test shows nothing")
		}
		n.clock = n.clock.Add(refusalTriedEvery)
		n.tryOnceMore(t.Context())
		if err := n.Ready(); err != nil {
			t.Errorf("not ready for one bucket: %v", err)
		}
	}
	if got := n.kinds(); len(got) != 1 || got[0] != "WRONGTYPE" {
		t.Errorf("status %v", got)
	}
	n.logged(t, 1, "kind=WRONGTYPE", "delete that key")
	if err := n.asks(t, "a"); err != nil {
		t.Errorf("another bucket: %v", err)
	}
}

// TestAServerThatDoesNotAnswerRefusesNothing: a server that refused calls and is then out of reach
// counts as out of reach, which the breaker handles.
func TestAServerThatDoesNotAnswerRefusesNothing(t *testing.T) {
	n := newRefusing(t)
	suite.Must(t, set("maxmemory", "1")(t.Context(), n.operator))
	for range refusedCalls {
		_ = n.asks(t, "a")
	}
	n.clock = n.clock.Add(refusedFor)
	if n.Ready() == nil {
		t.Error("ready while everything is refused")
	}
	_ = n.operator.Shutdown(t.Context()).Err()
	n.tryOnceMore(t.Context())
	if err := n.Ready(); err != nil {
		t.Errorf("not ready without its store, although it decides without it: %v", err)
	}
}

// TestClocksTooFarApart: a Redis whose clock is hours off from the node's refuses everything. The
// node says so in log, status and metrics, with the distance, and is not ready until they agree.
func TestClocksTooFarApart(t *testing.T) {
	real := time.Unix(1_800_000_000, 0)
	off := time.Duration(0)
	server := lab.NewTwin(func() quantity.StoreTime {
		return quantity.StoreTime(real.Add(off).UnixMicro())
	}, "a")
	clock := func() time.Time { return real }
	way, _ := server.Connect(clock)
	kept, _, err := journals.New("us", "n1")
	suite.Must(t, err)
	n := of(t, "n1", documents.Parse(t, 1, alone, "name: hour, limit: 100, window: 1h"), way, kept, clock)
	var log bytes.Buffer
	n.refusals.log = slog.New(slog.NewTextHandler(&log, nil))
	suite.Must(t, n.Open(t.Context()))
	for _, c := range []struct {
		off  time.Duration
		said string
	}{{3 * time.Hour, "3h0m0s ahead of"}, {-2 * time.Hour, "2h0m0s behind"}} {
		log.Reset()
		off = c.off
		for range 6 {
			_, _ = n.decide(t, "42")
			n.tryOnceMore(t.Context())
			real = real.Add(500 * time.Millisecond)
		}
		if err := n.Ready(); err == nil || !strings.Contains(err.Error(), c.said) {
			t.Errorf("%v: ready: %v", c.off, err)
		}
		all := n.Refusing()
		if len(all) != 1 || all[0].Kind != store.ClockApart || !strings.Contains(all[0].Advice, c.said) ||
			n.Refused()[store.ClockApart] == 0 {
			t.Errorf("%v: the status says %+v, counted are %v", c.off, all, n.Refused())
		}
		if lines := strings.Count(log.String(), "the store refuses calls"); lines != 1 ||
			!strings.Contains(log.String(), c.said) {
			t.Errorf("%v: logged %s", c.off, &log)
		}
		off = 0
		n.tryOnceMore(t.Context())
		if err := n.Ready(); err != nil {
			t.Errorf("the clocks agree again: %v", err)
		}
		if _, err := n.decide(t, "42"); err != nil {
			t.Error(err)
		}
		real = real.Add(2 * time.Minute)
	}
}

// TestAnotherLayoutIsSaid: a node that finds its store written by a version of another layout
// counts a loss, and its log says why.
func TestAnotherLayoutIsSaid(t *testing.T) {
	for _, layout := range []int64{algorithms.Layout - 1, algorithms.Layout + 1} {
		v := newVouching(t)
		if _, err := v.lives("n1"); err != nil {
			t.Fatal(err)
		}
		stands := v.server.Ledger(store.Whole)
		if o := stands.Open(quantity.StoreTime(v.now.UnixMicro()), algorithms.Open{
			Expected: stands.Generation, Generation: stands.Generation + 1, Region: stands.Region,
			Epoch: stands.Epoch, Replid: v.server.Replid(), Layout: layout}); !o.OK {
			t.Fatalf("another version opened %+v", o)
		}
		j, err := journal.Open(filepath.Join(v.dir, "n1"), journal.Options{Region: "us", Node: "n1"})
		suite.Must(t, err)
		clock := func() time.Time { return v.now }
		way, _ := v.server.Connect(clock)
		n := of(t, "n1", v.d, way, j, clock)
		var log bytes.Buffer
		n.config.Log = slog.New(slog.NewTextHandler(&log, nil))
		suite.Must(t, n.Open(t.Context()))
		suite.Must(t, j.Close())
		said := fmt.Sprintf("another version of quotad wrote what the store holds, in layout %d,",
			layout)
		if n.Losses() != 1 || !strings.Contains(log.String(), said) {
			t.Errorf("%d losses, want 1; the log does not say %q:\n%s", n.Losses(), said,
				log.String())
		}
	}
}
