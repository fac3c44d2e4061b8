package region

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/rules"
	"github.com/quotad/quotad/region/store"
)

// longAccounts are accounts of hundreds of bytes that differ in one byte at one end.
func longAccounts() []string {
	x := strings.Repeat("x", 250)
	return []string{x, x + "y", "y" + x, strings.Repeat("x", policy.MaxValueBytes), strings.Repeat("x", policy.MaxValueBytes+1)}
}

// TestLongKeysAreShort: keys of hundreds of bytes have buckets of their own, each found again by
// its descriptors, and neither the bucket's id nor its key in the store is long.
func TestLongKeysAreShort(t *testing.T) {
	started(t, document(t, 1, alone, "name: m, limit: 100, window: 1h"), []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n := c.running["us/n1"]
		for i, account := range longAccounts() {
			for range i + 1 {
				n.check(t, request(account))
			}
		}
		for i, account := range longAccounts() {
			q := request(account)
			if used := n.used(t, "m", q); used != int64(i+1) {
				t.Errorf("account %d: %d used, want %d", i, used, i+1)
			}
			if key := n.rules.Load().Match(q.Domain, q.Descriptors)[0].Target.Key; len(key) > 160 {
				t.Errorf("account %d: a key of %d bytes", i, len(key))
			}
		}
	})
}

// TestAnEntityIsInOneShard: on a Redis Cluster all buckets of one account are in one shard, however
// long its name is and whatever other values their keys have, so that one script decides on them.
func TestAnEntityIsInOneShard(t *testing.T) {
	r, err := rules.New(document(t, 1, alone, "name: m, limit: 100, window: 1h",
		"name: p, key: [account, path], limit: 100, window: 1h"), "us", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Shards = make(store.Shards, 32)
	for i := range r.Shards {
		r.Shards[i] = store.Shard(fmt.Sprintf("{quotad:%d}", i))
	}
	used := map[store.Shard]bool{}
	for _, account := range append(longAccounts(), "a", "b", "c") {
		for _, path := range []string{"/", strings.Repeat("/", 500)} {
			q := request(account)
			q.Descriptors["path"] = path
			all := r.Match(q.Domain, q.Descriptors)
			if len(all) != 2 || store.ShardOf(all[0].Target.Key) != store.ShardOf(all[1].Target.Key) {
				t.Errorf("an account of %d bytes is in several shards: %+v", len(account), all)
			}
			used[store.ShardOf(all[0].Target.Key)] = true
		}
	}
	if len(used) < 3 {
		t.Errorf("all accounts are in %d shards", len(used))
	}
}

// TestHintsOfNoBucketAreDropped: a hint whose bucket has a longer id than any has is neither kept
// nor passed on, but counted.
func TestHintsOfNoBucketAreDropped(t *testing.T) {
	s, heard := listening()
	long := strings.Repeat("b", policy.MaxBucketIDBytes)
	if news := merge(t, s, encode(t, hintOf("there", "n1", long, 1, 1), hintOf("there", "n1", long+"b", 1, 2))); !news || len(*heard) != 1 {
		t.Errorf("%d hints are heard", len(*heard))
	}
	if s.counts().refused != 1 || len(whole(t, s)) > 2*len(long) {
		t.Errorf("%d are counted, the state has %d bytes", s.counts().refused, len(whole(t, s)))
	}
}
