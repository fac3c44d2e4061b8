package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/memory/store"
)

// TestAlgorithmAndWindowArePartOfAKey: a limit whose algorithm or window changes begins anew,
// beside the old buckets. A limit whose amount changes goes on with the buckets that it has.
func TestAlgorithmAndWindowArePartOfAKey(t *testing.T) {
	key := func(limit string) string {
		r := rulesOf(t, documents.Parse(t, 1, hereAndThere, limit), "here")
		found := r.Match(of("a"))
		if len(found) != 1 {
			t.Fatalf("%d buckets for %q", len(found), limit)
		}
		return found[0].Target.Key
	}
	base := key("name: second, limit: 100, window: 1s")
	if other := key("name: second, limit: 200, window: 1s"); other != base {
		t.Errorf("another amount is another bucket: %q and %q", other, base)
	}
	for _, changed := range []string{"name: second, limit: 100, window: 2s",
		"name: second, limit: 100, window: 1s, algorithm: sliding_window_log"} {
		if key(changed) == base {
			t.Errorf("%q works on %q, too", changed, base)
		}
	}
}

// longAccounts are accounts of hundreds of bytes that differ in one byte at one end.
func longAccounts() []string {
	x := strings.Repeat("x", 250)
	return []string{x, x + "y", "y" + x, strings.Repeat("x", policy.MaxValueBytes),
		strings.Repeat("x", policy.MaxValueBytes+1)}
}

// TestKeysOfLongValuesAreShort: a bucket's key in the store is short, however long its descriptors
// are.
func TestKeysOfLongValuesAreShort(t *testing.T) {
	r := rulesOf(t, documents.Parse(t, 1, hereAndThere, "name: m, limit: 100, window: 1h"), "here")
	seen := map[string]bool{}
	for i, account := range longAccounts() {
		key := r.Match(of(account))[0].Target.Key
		if len(key) > 160 || seen[key] {
			t.Errorf("account %d: a key of %d bytes, which another account has: %t", i, len(key),
				seen[key])
		}
		seen[key] = true
	}
}

// TestAnEntityIsInOneShard: on a Redis Cluster all buckets of one account are in one shard, however
// long its name is and whatever other values their keys have, so that one script decides on them.
func TestAnEntityIsInOneShard(t *testing.T) {
	r := rulesOf(t, documents.Parse(t, 1, []string{"us: {weight: 1}"},
		"name: m, limit: 100, window: 1h",
		"name: p, key: [account, path], limit: 100, window: 1h"), "us")
	r.Shards = make(store.Shards, 32)
	for i := range r.Shards {
		r.Shards[i] = store.Shard(fmt.Sprintf("{quotad:%d}", i))
	}
	used := map[store.Shard]bool{}
	for _, account := range append(longAccounts(), "a", "b", "c") {
		for _, path := range []string{"/", strings.Repeat("/", 500)} {
			all := r.Match("api", map[string]string{"account": account, "path": path})
			if len(all) != 2 || store.ShardOf(all[0].Target.Key) !=
				store.ShardOf(all[1].Target.Key) {
				t.Errorf("an account of %d bytes is in several shards: %+v", len(account), all)
			}
			used[store.ShardOf(all[0].Target.Key)] = true
		}
	}
	if len(used) < 3 {
		t.Errorf("all accounts are in %d shards", len(used))
	}
}
