package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/quantity"
)

// masters returns clients of the servers of a Cluster that do not go through the store.
func masters(t testing.TB, s *servers.Server) (all []*redis.Client) {
	for _, addr := range strings.Split(strings.TrimPrefix(s.URL, "redis+cluster://"), ",") {
		all = append(all, fixtures.Operator(t, &servers.Server{URL: "redis://" + addr}))
	}
	return all
}

// TestCluster: calls over all masters come back in order; every shard is in one slot, and the
// masters share them evenly.
func TestCluster(t *testing.T) {
	t.Parallel()
	server := fixtures.Started(t)(servers.StartCluster(t.Context(), 3))
	s, mate := node(t, server, first), node(t, server, first)
	var calls []algorithms.Decide
	for i := range 200 {
		shard := s.Shard(fmt.Sprint(i))
		calls = append(calls, algorithms.Decide{Fence: under(epoch), Commit: true,
			Costs: []quantity.Units{quantity.Units(i + 1)},
			Buckets: []algorithms.LimitTarget{{Target: algorithms.Target{Key: BucketKey(shard,
				fmt.Sprint(i)), Terms: terms(1000)}}}})
	}
	for round := range 2 { // the first time the servers do not know the script
		for i, r := range s.Decide(t.Context(), calls) {
			if d := must(t, r); d.Status != algorithms.StatusOK ||
				d.Buckets[0].Used != quantity.Units((round+1)*(i+1)) {
				t.Errorf("call %d: %+v", i, d)
			}
		}
	}
	all := masters(t, server)
	for i, client := range all {
		if n := client.DBSize(t.Context()).Val(); n < 40 {
			t.Errorf("master %d holds %d of 212 keys", i, n)
		}
	}
	for i, shard := range s.Shards() { // each twelfth of the slots has one
		slot := int(all[0].ClusterKeySlot(t.Context(), TokenKey(shard)).Val())
		if slot*len(s.Shards())/servers.Slots != i {
			t.Errorf("shard %d, %s, is in slot %d", i, shard, slot)
		}
	}
	names := s.ServerNames(t.Context())
	for i, name := range names { // 4 shards are on each master
		if name != all[i/4].Options().Addr {
			t.Errorf("shard %d is said to be on %q, not %q", i, name, all[i/4].Options().Addr)
		}
	}
	if s.Generation() != mate.Generation() || s.Secret() != mate.Secret() {
		t.Error("two nodes are under two generations")
	}
	if _, err := s.Adopt(t.Context(), "2-b"); err != nil {
		t.Fatal(err)
	}
	for _, shard := range s.Shards() {
		c := chargeIn(shard, "k")
		if d := decide(t, mate, c); d.Status != algorithms.StatusUnknown {
			t.Errorf("shard %s: %v under the old epoch", shard, d.Status)
		}
		if c.Fence = under("2-b"); admitted(decide(t, mate, c)) != 1 {
			t.Errorf("shard %s does not serve under the new epoch", shard)
		}
	}
	if policy, err := s.Eviction(t.Context()); err != nil || policy != NoEviction {
		t.Errorf("maxmemory-policy %q, %v", policy, err)
	}
	masters(t, server)[1].ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru")
	if policy, err := s.Eviction(t.Context()); err != nil || policy != "allkeys-lru" {
		t.Errorf("maxmemory-policy %q of one master, %v", policy, err)
	}
}

// moveSlot moves a slot from one master to another, key by key.
func moveSlot(t *testing.T, from, to *redis.Client, slot int) {
	t.Helper()
	ctx := context.Background()
	id := func(c *redis.Client) string { return c.Do(ctx, "CLUSTER", "MYID").Val().(string) }
	source, target := id(from), id(to)
	do := func(c *redis.Client, args ...any) {
		t.Helper()
		if err := c.Do(ctx, args...).Err(); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	do(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", source)
	do(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", target)
	host, port, _ := strings.Cut(to.Options().Addr, ":")
	for {
		keys := from.ClusterGetKeysInSlot(ctx, slot, 1).Val()
		if len(keys) == 0 {
			break
		}
		do(from, "MIGRATE", host, port, keys[0], 0, 5000)
	}
	do(to, "CLUSTER", "SETSLOT", slot, "NODE", target)
	do(from, "CLUSTER", "SETSLOT", slot, "NODE", target)
}

// TestSlotMoves: while a slot moves to another master, every unit admitted is charged once and
// stays charged. The new master holds other data than those the shard was opened on. The other node
// confirms that nothing is lost.
func TestSlotMoves(t *testing.T) {
	t.Parallel()
	const entitlement = 1 << 30
	server := fixtures.Started(t)(servers.StartCluster(t.Context(), 3))
	all := masters(t, server)
	nodes := []*Store{node(t, server, as("n1", 0, nil)), node(t, server, as("n2", 0, nil))}
	var shard Shard
	var slot int
	for _, shard = range nodes[0].Shards() { // one that the first master has
		if slot = int(all[0].ClusterKeySlot(t.Context(),
			TokenKey(shard)).Val()); slot < servers.Slots/3 {
			break
		}
	}
	const ids = 20
	id := func(i int) string { return fmt.Sprint("k", i%ids) }
	decideOn := func(s *Store, i int) Result[algorithms.Decided] {
		c := chargeIn(shard, id(i))
		c.Buckets[0].Terms.Entitlement = entitlement
		return s.Decide(context.Background(), []algorithms.Decide{c})[0]
	}
	units := make([][ids]quantity.Units, len(nodes))
	stop := make(chan struct{})
	var work sync.WaitGroup
	for n, s := range nodes {
		work.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if r := decideOn(s, i); r.Err == nil {
					units[n][i%ids] += admitted(r.Value)
				}
			}
		})
	}
	for decideOn(nodes[0], 0).Value.Buckets[0].Used < 50 {
	}
	moveSlot(t, all[0], all[1], slot)
	// until the move is known
	for r := decideOn(nodes[0], 0); !Answered(r.Err); r = decideOn(nodes[0], 0) {
	}
	close(stop)
	work.Wait()
	if r := decideOn(nodes[0], 0); !errors.Is(r.Err, ErrUnknownStore) {
		t.Errorf("after the move: %+v", r)
	}
	for i := range ids {
		used, err := all[1].HGet(t.Context(), BucketKey(shard, id(i)), "u").Int64()
		// Calls that ran on a server found to hold other data are charged and not admitted.
		if got := units[0][i] + units[1][i]; err != nil || quantity.Units(used) < got {
			t.Errorf("%s: %d admitted, %d charged, %v", id(i), got, used, err)
		}
	}
	known := nodes[0].Generation()
	opened := mustOpen(t, nodes[0], as("n1", known, map[string]*Store{"n2": nodes[1]}))
	if opened.Lost || opened.Generation <= known {
		t.Errorf("opened %+v", opened)
	}
	mustOpen(t, nodes[1], Opening{Region: "eu", Epoch: epoch, LastGeneration: known})
	for _, s := range nodes {
		all, units := statuses(t, s, "other")
		for i, other := range s.Shards() {
			if all[i] != algorithms.StatusOK || units[i] == 0 {
				t.Errorf("shard %s, %s moved: %v, %d admitted", other, shard, all[i], units[i])
			}
		}
	}
}

// TestMasterOfAClusterDies: its shards fail, each with an error that says so, and the others serve.
func TestMasterOfAClusterDies(t *testing.T) {
	t.Parallel()
	server := fixtures.Started(t)(servers.StartCluster(t.Context(), 3))
	s := node(t, server, first)
	statuses(t, s, "k")
	dying := masters(t, server)[2]
	held := map[Shard]bool{}
	for _, shard := range s.Shards() {
		held[shard] = int(dying.ClusterKeySlot(t.Context(),
			TokenKey(shard)).Val()) >= 2*servers.Slots/3
	}
	dying.ConfigSet(t.Context(), "cluster-require-full-coverage", "no")
	for _, c := range masters(t, server)[:2] {
		c.ConfigSet(t.Context(), "cluster-require-full-coverage", "no")
	}
	_ = dying.ShutdownNoSave(t.Context())
	for _, shard := range s.Shards() {
		r := s.Decide(t.Context(), []algorithms.Decide{chargeIn(shard, "other")})[0]
		if (r.Err != nil) != held[shard] {
			t.Errorf("shard %s, on the dead master %v: %v", shard, held[shard], r.Err)
		}
		if r.Err != nil && !strings.Contains(r.Err.Error(), dying.Options().Addr) {
			t.Errorf("%v does not name the server", r.Err)
		}
	}
}
