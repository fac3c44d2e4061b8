package admit

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/region/memory/store"
)

// deletes deletes a key of a Redis that is taken for a Cluster.
func (c *cluster) deletes(key string) {
	c.t.Helper()
	client := redis.NewClient(&redis.Options{Addr: c.server.URL[len("redis://"):]})
	defer client.Close()
	if gone, err := client.Del(c.t.Context(), key).Result(); err != nil || gone != 1 {
		c.t.Fatalf("%d keys %q deleted, %v", gone, key, err)
	}
}

// TestSpanningRepeatedPartStays: an admitted request is sent again after one of its shards lost its
// data. What the first attempt charged in the other shard stays charged.
func TestSpanningRepeatedPartStays(t *testing.T) {
	spanned(t, []string{perAccount, perAddress + ", on_store_failure: deny"},
		func(t *testing.T, c *cluster, n *running) {
			q := both(2)
			q.ID = "r1"
			if d := n.check(t, q); !d.Allowed {
				t.Fatalf("%+v", d)
			}
			r := n.tenure.Rules()
			parts := waiting{rules: r, applied: r.Match(q.Domain, q.Descriptors)}.parts()
			c.deletes(store.TokenKey(parts[1].shard))
			if d := n.check(t, q); d.Allowed {
				t.Errorf("admitted while a shard is lost: %+v", d)
			}
			if used := n.used(t, "per-account", q); used != 2 {
				t.Errorf("%d used of the first part, which had admitted 2", used)
			}
		})
}

// TestSpanningTakesNothingBackOfADeletedBucket: a bucket of a charged part is deleted before
// another part denies. The refund does not create the bucket again, so the next request notices the
// deletion.
func TestSpanningTakesNothingBackOfADeletedBucket(t *testing.T) {
	spanned(t, []string{perAccount, perAddress}, func(t *testing.T, c *cluster, n *running) {
		n.check(t, both(3))
		q := both(2)
		r := n.tenure.Rules()
		w := waiting{rules: r, applied: r.Match(q.Domain, q.Descriptors), cost: q.Cost,
			commit: true}.waits(time.Minute)
		p := w.parts()[0]
		own := w.only(p)
		a, err := n.queue.ask(t.Context(), own)
		if err != nil || a.err != nil {
			t.Fatalf("%+v, %v", a, err)
		}
		c.deletes(own.applied[0].Target.Key)
		n.queue.takeBack(t.Context(), n.queue.chargesOf(own, p.shard, a)[0])
		if again, err := n.queue.ask(t.Context(), own); err != nil || again.lost() == nil {
			t.Errorf("%v, %v: want a lost bucket", again.err, err)
		}
	})
}
