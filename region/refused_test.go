package region

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/network"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/region/store"
)

// refusing is a node on a Redis that is made to refuse calls, with a clock of its own for what it
// says of them.
type refusing struct {
	*Node
	operator *redis.Client
	log      bytes.Buffer
	clock    time.Time
}

func newRefusing(t *testing.T) *refusing {
	t.Helper()
	server := process(t)
	n := &refusing{Node: unstarted(t, 1, document(t, 1, hereAndThere, "name: hour, limit: 100, window: 1h")),
		operator: operator(t, server), clock: time.Unix(1_700_000_000, 0)}
	n.Node.log = slog.New(slog.NewTextHandler(&n.log, nil))
	n.refusals = newRefusals(n.Node.log, func() time.Time { return n.clock })
	st, err := store.Connect(store.Options{URL: server.URL, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	if _, err := st.Open(t.Context(), store.Opening{Region: "here", Epoch: n.rules.Load().epoch, Bootstrap: true}); err != nil {
		t.Fatal(err)
	}
	st.Heed(n.refusals.saw)
	n.store = st
	n.batcher = newBatcher(n.store, n.seen, n.breakers, queueLength, n.deadline, func([]waiting, algorithms.Decided) {})
	return n
}

// asks has the store decide a request of an account.
func (n *refusing) asks(t *testing.T, account string) answered {
	r := n.rules.Load()
	answer := make(chan answered, 1)
	n.batcher.decide(t.Context(), []waiting{{rules: r, applied: r.match(request(account)), cost: 1, commit: true, answer: answer}})
	return <-answer
}

// kinds returns those that the status says are refused now.
func (n *refusing) kinds() (all []string) {
	for _, r := range n.refusals.current() {
		all = append(all, r.Kind)
	}
	return all
}

func set(name, value string) func(context.Context, *redis.Client) error {
	return func(ctx context.Context, c *redis.Client) error { return c.ConfigSet(ctx, name, value).Err() }
}

func acl(rule string) func(context.Context, *redis.Client) error {
	return func(ctx context.Context, c *redis.Client) error {
		return c.Do(ctx, "ACL", "SETUSER", "default", rule).Err()
	}
}

// TestWhatTheStoreRefusesIsSaid: a Redis that answers, but refuses every call, makes the node not
// ready after some seconds; the log says so once a minute with what to do and how often, status and
// metrics say it while it lasts; the first call that is done makes the node ready, without any
// request.
func TestWhatTheStoreRefusesIsSaid(t *testing.T) {
	for kind, c := range map[string]struct {
		breaks, mends func(context.Context, *redis.Client) error
		advice        string
	}{
		"OOM":        {set("maxmemory", "1"), set("maxmemory", "0"), "raise its maxmemory"},
		"NOREPLICAS": {set("min-replicas-to-write", "1"), set("min-replicas-to-write", "0"), "min-replicas-to-write"},
		"READONLY": {func(ctx context.Context, c *redis.Client) error { return c.SlaveOf(ctx, "127.0.0.1", "1").Err() },
			func(ctx context.Context, c *redis.Client) error { return c.SlaveOf(ctx, "no", "one").Err() }, "it is a replica"},
		"NOPERM": {acl("-hset"), acl("+hset"), store.MinimalACL},
	} {
		t.Run(kind, func(t *testing.T) {
			n := newRefusing(t)
			if a := n.asks(t, "a"); !a.ok() || n.Ready() != nil || len(n.kinds()) != 0 {
				t.Fatalf("%+v, %v, %v", a, n.Ready(), n.kinds())
			}
			if err := c.breaks(t.Context(), n.operator); err != nil {
				t.Fatal(err)
			}
			const calls = 40
			for range calls {
				if a := n.asks(t, "a"); a.ok() {
					t.Fatalf("%+v: the test shows nothing", a)
				}
			}
			if err := n.Ready(); err != nil {
				t.Errorf("not ready at the first refusals: %v", err)
			}
			n.clock = n.clock.Add(refusedFor)
			if err := n.Ready(); err == nil || !strings.Contains(err.Error(), kind) || !strings.Contains(err.Error(), c.advice) {
				t.Errorf("ready while everything is refused: %v", err)
			}
			if got := n.kinds(); len(got) != 1 || got[0] != kind || n.refusals.totals()[kind] != calls {
				t.Errorf("status %v, totals %v, want %d of %s", got, n.refusals.totals(), calls, kind)
			}
			n.logged(t, 1, "kind="+kind, "calls=1 ", c.advice)
			n.clock = n.clock.Add(refusalLoggedEvery)
			n.asks(t, "a")
			n.logged(t, 2, "kind="+kind, "calls=40 ", c.advice)
			n.tryOnceMore(t.Context())
			if n.Ready() == nil || len(n.kinds()) != 1 {
				t.Errorf("ready after a try that was refused: %v", n.kinds())
			}
			if err := c.mends(t.Context(), n.operator); err != nil {
				t.Fatal(err)
			}
			n.tryOnceMore(t.Context())
			if err := n.Ready(); err != nil {
				t.Errorf("not ready although a call was done: %v", err)
			}
			n.logged(t, 2)
			n.clock = n.clock.Add(refusalLoggedEvery)
			n.refusals.tellAll()
			n.logged(t, 3, "calls=1 ") // the try
			if got := n.kinds(); len(got) != 0 || !strings.Contains(n.log.String(), "the store takes calls again") {
				t.Errorf("status %v\n%s", got, &n.log)
			}
		})
	}
}

// logged wants so many lines about refusals, the last of which has some words.
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

// TestARefusalOfOneBucketIsNotEverything: a key that another program wrote is refused and said, and
// all else is served.
func TestARefusalOfOneBucketIsNotEverything(t *testing.T) {
	n := newRefusing(t)
	r := n.rules.Load()
	key := r.match(request("broken"))[0].target.Key
	if err := n.operator.Set(t.Context(), key, "another's", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if a := n.asks(t, "broken"); a.ok() {
			t.Fatalf("%+v: the test shows nothing", a)
		}
		n.clock = n.clock.Add(refusalTriedEvery)
		n.tryOnceMore(t.Context())
		if err := n.Ready(); err != nil {
			t.Errorf("not ready for one bucket: %v", err)
		}
	}
	if got := n.kinds(); len(got) != 1 || got[0] != "WRONGTYPE" || n.breakers.tripped(store.Whole) {
		t.Errorf("status %v", got)
	}
	n.logged(t, 1, "kind=WRONGTYPE", "delete that key")
	if a := n.asks(t, "a"); !a.ok() {
		t.Errorf("another bucket: %+v", a)
	}
}

// TestAServerThatDoesNotAnswerRefusesNothing: whoever refused calls and then is out of reach is the
// breaker's matter.
func TestAServerThatDoesNotAnswerRefusesNothing(t *testing.T) {
	n := newRefusing(t)
	if err := set("maxmemory", "1")(t.Context(), n.operator); err != nil {
		t.Fatal(err)
	}
	for range refusedCalls {
		n.asks(t, "a")
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

// TestNoStartWithoutRights: a node whose user may not do all that scripts do does not start, and
// nothing is charged.
func TestNoStartWithoutRights(t *testing.T) {
	server := process(t)
	admin := operator(t, server)
	c := &cluster{t: t, dir: t.TempDir(), network: network.New(), sizes: map[string]int{"here": 1}, running: map[string]*running{}, bootstrap: true,
		servers: map[string]*servers.Server{"here": {URL: strings.Replace(server.URL, "://", "://node:horse@", 1)}}}
	c.network.Host("here/n1")
	c.seed = c.gossipAddress("here/n1").String()
	defer c.close()
	d := document(t, 1, hereAndThere, "name: hour, limit: 100, window: 1h")
	rights := func(rules string) {
		args := []any{"ACL", "SETUSER", "node", "reset", ">horse"}
		for _, rule := range strings.Fields(rules) {
			args = append(args, rule)
		}
		if err := admin.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, right := range []string{"+set", "+hdel", "+pexpireat", "+del"} {
		rights(strings.Replace(store.MinimalACL, right+" ", "", 1))
		if _, err := c.tryStart("here/n1", d); err == nil || !strings.Contains(err.Error(), "lacks the rights "+right) {
			t.Fatalf("without %s: %v", right, err)
		}
		if keys := admin.Keys(t.Context(), "*:token").Val(); len(keys) != 0 {
			t.Errorf("without %s the store was opened: %v", right, keys)
		}
	}
	rights(store.MinimalACL)
	n := c.start("here/n1", d)
	if got := n.check(t, request("a")); got.Reason != WithinLimit {
		t.Errorf("with all rights: %+v", got)
	}
}
