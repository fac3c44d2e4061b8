package region_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/redis/go-redis/v9"
)

// Several buckets of a request are deleted. Each is restored with its use, one after the other and
// within the request.
func TestSeveralBucketsOfARequestAreDeleted(t *testing.T) {
	limits := []string{"name: hour, limit: 100, window: 1h", "name: day, limit: 100, window: 24h"}
	for name, deleted := range map[string][]string{"the first": {"hour"}, "the second": {"day"},
		"both": {"hour", "day"}} {
		t.Run(name, func(t *testing.T) {
			started(t, documents.Parse(t, 1, alone, limits...), []string{"us/n1"},
				func(t *testing.T, c *cluster) {
					n, q := c.running["us/n1"], cost("a", 60)
					if d := n.check(t, q); !d.Allowed {
						t.Fatalf("%+v", d)
					}
					for _, limit := range deleted {
						c.delete("us", n, limit, q)
					}
					q.Cost = 1
					if d := n.check(t, q); d.Reason != admit.WithinLimit {
						t.Errorf("%+v", d)
					}
					for _, limit := range []string{"hour", "day"} {
						if used := n.used(t, limit, q); used != 61 {
							t.Errorf("%s: %d used, want 61", limit, used)
						}
					}
				})
		})
	}
}

// A bucket takes hours to fill by one document, and seconds by another. A node that knows of it asks
// again when it would have expired by one of them and not by the other: what the node remembers is
// true, and the bucket was not deleted.
func TestADocumentDeletesNoBucket(t *testing.T) {
	suite.LongWithRace(t)
	const slow, fast = 1000, 1_000_000
	for _, kind := range []algorithms.Kind{algorithms.TokenBucket, algorithms.LeakyBucket} {
		for _, test := range []struct {
			name          string
			before, after int
			asks          string        // the node that asks under the other document
			wait          time.Duration // and when: a queue has promised turns by the first one
		}{
			{"raised", slow, fast, "us/n1", 5 * time.Minute},
			{"lowered", fast, slow, "us/n2", 0},
		} {
			t.Run(fmt.Sprint(kind, " ", test.name), func(t *testing.T) {
				limits := func(version, limit int) *policy.Document {
					return documents.Parse(t, version, alone, fmt.Sprintf("name: rate, limit: %d, "+
						"algorithm: %s, window: 24h, burst: 100, on_store_failure: deny", limit, kind))
				}
				started(t, limits(1, test.before), []string{"us/n1", "us/n2"},
					func(t *testing.T, c *cluster) {
						n1, n2, q := c.running["us/n1"], c.running["us/n2"], request("a")
						nextCell(10 * time.Second) // no cell of these kinds is longer
						n1.check(t, q)
						n2.check(t, q)
						suite.Must(t, n1.Adopt(t.Context(), limits(2, test.after)))
						time.Sleep(test.wait)
						c.running[test.asks].check(t, q)
						time.Sleep(time.Minute)
						if d := n2.check(t, q); !d.Allowed {
							t.Errorf("a minute later: %+v", d)
						}
					})
			})
		}
	}
}

// delete removes the hash of a bucket, as an operator or an eviction would.
func (c *cluster) delete(region string, n *running, limit string, q admit.Request) {
	c.t.Helper()
	_, b, err := n.tenure.Rules().Locate(limit, q.Domain, q.Descriptors)
	suite.Must(c.t, err)
	key := n.tenure.Rules().Key(b.ID)
	if twin := c.twins[region]; twin != nil {
		if !twin.Holds(key) {
			c.t.Fatalf("%q is not there to be deleted", key)
		}
		twin.Delete(key)
		return
	}
	c.redis(region, func(ctx context.Context, client *redis.Client) error {
		if gone, err := client.Del(ctx, key).Result(); err != nil || gone != 1 {
			return fmt.Errorf("deleted %d keys of %q: %w", gone, key, err)
		}
		return nil
	})
}

// When a bucket vanishes from the store, the nodes that used it notice. One of a short window is
// closed for its cell and the next, one of a long window is restored. A bucket that no running node
// knows begins anew, and no other bucket is touched.
func TestADeletedBucket(t *testing.T) {
	short := "name: short, domain: short, limit: 50, window: 10s, on_store_failure: deny"
	d := documents.Parse(t, 1, alone, long(algorithms.FixedWindow, 100, ""), short)
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n, a := c.running["us/n1"], request("a")
		s := admit.Request{Domain: "short", Descriptors: a.Descriptors, Cost: 1}
		nextCell(10 * time.Second)
		for range 20 {
			n.check(t, a)
			n.check(t, s)
			n.check(t, request("other"))
		}
		generation := n.Status().Generation
		c.delete("us", n, "long", a)
		c.delete("us", n, "short", s)
		if got := n.check(t, a); !got.Allowed || got.Remaining != 79 {
			t.Errorf("the long one: %+v", got)
		}
		for cell := range 2 {
			if got := n.check(t, s); got.Allowed || got.Share != 0 {
				t.Errorf("the short one, cell %d: %+v", cell, got)
			}
			nextCell(10 * time.Second)
		}
		if got := n.check(t, s); !got.Allowed || got.Remaining != 49 {
			t.Errorf("the short one, two cells later: %+v", got)
		}
		if got := n.check(t, request("other")); !got.Allowed || got.Remaining != 79 ||
			n.Status().Generation == generation {
			t.Errorf("another bucket: %+v, generation %d, before the deletion %d", got,
				n.Status().Generation, generation)
		}

		time.Sleep(time.Second)
		c.stop("us/n1")
		n = c.start("us/n1", d)
		c.delete("us", n, "long", a)
		if got := n.check(t, a); !got.Allowed || got.Remaining != 99 {
			t.Errorf("a bucket that no running node knows: %+v", got)
		}
	})
}

// Under traffic from both nodes, nothing that was used of a deleted bucket is admitted again.
func TestADeletedBucketUnderTraffic(t *testing.T) {
	for _, kind := range windows {
		t.Run(string(kind), func(t *testing.T) {
			started(t, documents.Parse(t, 1, halves, long(kind, 200, ", lending_limit: 1")),
				[]string{"us/n1", "us/n2", "eu/n1"}, func(t *testing.T, c *cluster) {
					q := request("a")
					admitted := quantity.Units(0)
					for range 4 {
						admitted += c.loadAll(q, 200*time.Millisecond)
						c.delete("us", c.running["us/n1"], "long", q)
						admitted += c.loadAll(q, 100*time.Millisecond)
						c.delete("eu", c.running["eu/n1"], "long", q)
					}
					if admitted += c.loadAll(q, 3*time.Second); admitted > 200 || admitted < 195 {
						t.Errorf("%d admitted of 200", admitted)
					}
				})
		})
	}
}
