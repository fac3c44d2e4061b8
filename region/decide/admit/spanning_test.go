package admit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/decide/receipts"
	"github.com/quotad/quotad/region/memory/store"
)

// asCluster has the region's embedded Redis taken for a Redis Cluster of one server, whose keys are
// in many shards.
func (c *cluster) asCluster() {
	c.twin = nil
	c.url = strings.Replace(c.url, "redis://", "redis+cluster://", 1)
}

// spanned runs a test on one node of a region whose Redis is a Cluster.
func spanned(t *testing.T, limits []string, f func(t *testing.T, c *cluster, n *running)) {
	t.Helper()
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		c.asCluster()
		f(t, c, c.start("here/n1", documents.Parse(t, 1, []string{"here: {weight: 1}"}, limits...)))
	})
}

// both is a request to which limits of an account and of an address apply, in two shards.
func both(units quantity.Units) Request {
	return Request{Domain: "api", Descriptors: map[string]string{"account": "42",
		"address": "10.0.0.1"}, Cost: units, Receipt: true}
}

const (
	perAccount = "name: per-account, limit: 10, window: 1h"
	perAddress = "name: per-address, key: [address], limit: 5, window: 1h"
)

// shardsOf returns how many shards a request's limits are in.
func (n *running) shardsOf(q Request) int {
	r := n.tenure.Rules()
	return len(queue.Ask{Rules: r, Applied: r.Match(q.Domain, q.Descriptors)}.Parts())
}

// asksFirstPart has a request charged in the first of its shards, as by a node that ends after that. It returns
// the place of the limit there.
func (n *running) asksFirstPart(t *testing.T, q Request) (limit int) {
	t.Helper()
	r := n.tenure.Rules()
	all := r.Match(q.Domain, q.Descriptors)
	p := queue.Ask{Rules: r, Applied: all}.Parts()[0]
	limit = p.Of[0]
	w := queue.Ask{Rules: r, Applied: all[limit : limit+1], Cost: q.Cost, Commit: true,
		Once: store.OnceKeyIn(p.Shard, onceKey(q.ID, q.Cost, all))}.Waits(time.Now(), time.Minute)
	if a, err := n.queue.Decide(t.Context(), w); err != nil || a.Err != nil {
		t.Fatalf("%+v, %v", a, err)
	}
	return limit
}

// wantUsed fails the test unless so much counts against both limits.
func (n *running) wantUsed(t *testing.T, account, address quantity.Units) {
	t.Helper()
	if a, b := n.used(t, "per-account", both(1)), n.used(t, "per-address", both(1)); a != account ||
		b != address {
		t.Errorf("used %d and %d, want %d and %d", a, b, account, address)
	}
}

// TestSpanningDenialSpendsNothing: a request is admitted by all shards or spends nothing in any,
// whichever denies it.
func TestSpanningDenialSpendsNothing(t *testing.T) {
	for _, limits := range [][]string{{perAccount, perAddress}, {perAddress, perAccount}} {
		spanned(t, limits, func(t *testing.T, c *cluster, n *running) {
			if got := n.shardsOf(both(1)); got != 2 {
				t.Fatalf("the limits are in %d shards: this test proves nothing", got)
			}
			d := n.check(t, both(3))
			if !d.Allowed || d.Limit != "per-address" || d.Remaining != 2 ||
				d.At != quantity.StoreTime(time.Now().UnixMicro()) || d.ResetAfter != time.Hour {
				t.Errorf("%+v, want 2 of per-address left", d)
			}
			if d, err := n.Peek(t.Context(), both(2)); err != nil || !d.Allowed ||
				d.Remaining != 0 {
				t.Errorf("peeked %+v, %v", d, err)
			}
			n.wantUsed(t, 3, 3)
			if d := n.check(t, both(3)); d.Allowed || d.Limit != "per-address" ||
				d.Reason != OverLimit || d.RetryAfter != time.Hour {
				t.Errorf("%+v, want a denial by per-address", d)
			}
			n.wantUsed(t, 3, 3)
			account := both(6)
			delete(account.Descriptors, "address")
			n.check(t, account)
			if d := n.check(t, both(2)); d.Allowed || d.Limit != "per-account" {
				t.Errorf("%+v, want a denial by per-account", d)
			}
			if d := n.check(t, both(11)); d.Allowed || d.Reason != Never {
				t.Errorf("%+v, want %s", d, Never)
			}
			n.wantUsed(t, 9, 3)
		})
	}
}

// TestSpanningRefund: a receipt gives back in every shard what was charged there, once.
func TestSpanningRefund(t *testing.T) {
	spanned(t, []string{perAccount, perAddress}, func(t *testing.T, c *cluster, n *running) {
		receipt := n.charged(t, both(2))
		n.charged(t, both(3))
		want := []receipts.SettledCharge{{Limit: "per-account", Back: 2}, {Limit: "per-address", Back: 2}}
		n.refunds(t, receipt, false, want...)
		n.refunds(t, receipt, true, want...)
		n.wantUsed(t, 3, 3)
	})
}

// TestSpanningRequestID: a request that is sent twice is charged once in every shard, also where
// the first attempt ended between two shards; refunded, it is decided anew.
func TestSpanningRequestID(t *testing.T) {
	spanned(t, []string{perAccount, perAddress}, func(t *testing.T, c *cluster, n *running) {
		q := both(2)
		q.ID = "r1"
		first, second := n.check(t, q), n.check(t, q)
		if !first.Allowed || first.Repeated || !second.Allowed || !second.Repeated ||
			second.Receipt != first.Receipt {
			t.Errorf("%+v, then %+v", first, second)
		}
		n.wantUsed(t, 2, 2)
		half := q
		half.ID = "r2"
		before := n.asksFirstPart(t, half)
		n.wantUsed(t, 4, 2)
		time.Sleep(time.Second)
		if d := n.check(t, half); !d.Allowed || d.Repeated || !d.Limits[before].Earlier ||
			d.Limits[1-before].Earlier ||
			d.Limits[1-before].At.Sub(d.Limits[before].At) < time.Second.Microseconds() {
			t.Errorf("%+v", d)
		}
		n.wantUsed(t, 4, 4)
		if _, err := n.receipts.Settle(t.Context(), first.Receipt, 0); err != nil {
			t.Fatal(err)
		}
		n.wantUsed(t, 2, 2)
		if d := n.check(t, q); !d.Allowed || d.Repeated {
			t.Errorf("sent again after the refund: %+v", d)
		}
		n.wantUsed(t, 4, 4)
	})
}

// TestSpanningQueuesComeLast: a queue's turn cannot be given back, so it is taken after all else
// admitted the request.
func TestSpanningQueuesComeLast(t *testing.T) {
	queue := "name: queue, algorithm: leaky_bucket, limit: 3600, window: 1h, burst: 100"
	spanned(t, []string{queue, perAddress}, func(t *testing.T, c *cluster, n *running) {
		n.check(t, both(5))
		before := n.used(t, "queue", both(1))
		if d := n.check(t, both(1)); d.Allowed || d.Limit != "per-address" {
			t.Errorf("%+v", d)
		}
		if after := n.used(t, "queue", both(1)); after != before {
			t.Errorf("%d wait, and %d after a denial", before, after)
		}
	})
}

// TestSpanningFailure: where a shard fails after another was charged, that is given back, and the
// request is decided without the store; the shard is opened anew by itself.
func TestSpanningFailure(t *testing.T) {
	spanned(t, []string{perAccount + ", on_store_failure: deny", perAddress},
		func(t *testing.T, c *cluster, n *running) {
			n.check(t, both(1))
			r := n.tenure.Rules()
			broken := queue.Ask{Rules: r, Applied: r.Match(asked(both(1)))}.Parts()[1].Shard
			del := redis.NewClient(&redis.Options{Addr: strings.TrimPrefix(c.server.URL,
				"redis://")})
			defer del.Close()
			if err := del.Del(t.Context(), store.TokenKey(broken)).Err(); err != nil {
				t.Fatal(err)
			}
			known := n.tenure.Generation()
			if d := n.check(t, both(1)); d.Allowed || d.Reason != StoreFailure {
				t.Errorf("%+v, want %s", d, StoreFailure)
			}
			c.within(5*time.Second, "the store to be opened anew",
				func() bool { return n.tenure.Generation() > known })
			c.within(5*time.Second, "the failure's charge to be given back",
				func() bool { return n.used(t, "per-account", both(1)) == 1 })
		})
}

// TestSpanningUnheard: a shard denies, and another does not answer. Its limit decides, because it
// can never admit as much, and the decision says cell, time and entitlement of that limit.
func TestSpanningUnheard(t *testing.T) {
	spanned(t, []string{perAccount, perAddress + ", weights: {here: 3}"},
		func(t *testing.T, c *cluster, n *running) {
			q := both(5)
			for range 2 {
				q.Descriptors = map[string]string{"account": "42"}
				n.check(t, q)
			}
			q = both(8)
			r := n.tenure.Rules()
			parts := queue.Ask{Rules: r, Applied: r.Match(asked(q))}.Parts()
			if len(parts) != 2 || parts[1].Of[0] != 1 {
				t.Fatalf("%+v: the limit of an address is not asked last", parts)
			}
			del := redis.NewClient(&redis.Options{Addr: strings.TrimPrefix(c.server.URL,
				"redis://")})
			defer del.Close()
			if err := del.Del(t.Context(), store.TokenKey(parts[1].Shard)).Err(); err != nil {
				t.Fatal(err)
			}
			d := n.check(t, q)
			if d.Allowed || d.Reason != Never || d.Limit != "per-address" || d.Entitlement != 5 ||
				d.At == 0 || d.Cell != algorithms.CellAt(d.At, time.Hour.Microseconds()) {
				t.Errorf("%+v", d)
			}
		})
}

// TestSpanningTogether: whatever many requests on overlapping limits are answered, what was
// admitted is what is charged at the end, and no limit is exceeded.
func TestSpanningTogether(t *testing.T) {
	accounts, addresses := "name: per-account, limit: 60, window: 1h",
		"name: per-address, key: [address], algorithm: token_bucket, limit: 60, window: 24h"
	spanned(t, []string{accounts, addresses}, func(t *testing.T, c *cluster, n *running) {
		var admitted [2][4]atomic.Int64
		var all sync.WaitGroup
		for worker := range 8 {
			all.Go(func() {
				random := rand.New(rand.NewPCG(uint64(worker), 7))
				for range 60 {
					a, b := random.IntN(4), random.IntN(4)
					q := Request{Domain: "api", Cost: quantity.Units(1 + random.Int64N(3)),
						Descriptors: map[string]string{
							"account": fmt.Sprint("account ", a), "address": fmt.Sprint("address ",
								b)}}
					if d, err := n.Check(context.Background(), q); err != nil {
						t.Error(err)
					} else if d.Allowed {
						admitted[0][a].Add(int64(q.Cost))
						admitted[1][b].Add(int64(q.Cost))
					}
				}
			})
		}
		all.Wait()
		for i := range 4 {
			q := Request{Domain: "api",
				Descriptors: map[string]string{"account": fmt.Sprint("account ", i),
					"address": fmt.Sprint("address ", i)}}
			for k, limit := range []string{"per-account", "per-address"} {
				if got, used := quantity.Units(admitted[k][i].Load()),
					n.used(t, limit, q); got != used || got > 60 || got < 50 {
					t.Errorf("%s %d: %d admitted, %d charged of 60", limit, i, got, used)
				}
			}
		}
	})
}

// What was settled is so in all shards for as long as each limit says; the shard of one that says less
// forgets it before the others, and does nothing more then.
func TestSpanningIsSettledWithinEachLimitsTime(t *testing.T) {
	spanned(t, []string{"name: per-account, limit: 10, window: 1h",
		"name: per-address, key: [address], limit: 5, window: 1s, settle_within: 3s"},
		func(t *testing.T, c *cluster, n *running) {
			receipt := n.charged(t, both(2))
			n.refunds(t, receipt, false, receipts.SettledCharge{Limit: "per-account", Back: 2},
				receipts.SettledCharge{Limit: "per-address", Back: 2})
			n.refunds(t, receipt, true, receipts.SettledCharge{Limit: "per-account", Back: 2},
				receipts.SettledCharge{Limit: "per-address", Back: 2})
			time.Sleep(10 * time.Second)
			n.refunds(t, receipt, true, receipts.SettledCharge{Limit: "per-account", Back: 2},
				receipts.SettledCharge{Limit: "per-address", Reason: algorithms.SettledLate.String()})
		})
}
