package admit

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/region/decide/queue"
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
			parts := queue.Ask{Rules: r, Applied: r.Match(q.Domain, q.Descriptors)}.Parts()
			c.deletes(store.TokenKey(parts[1].Shard))
			if d := n.check(t, q); d.Allowed {
				t.Errorf("admitted while a shard is lost: %+v", d)
			}
			if used := n.used(t, "per-account", q); used != 2 {
				t.Errorf("%d used of the first part, which had admitted 2", used)
			}
		})
}
