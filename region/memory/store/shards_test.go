package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// inShards connects to one server as if it were a Cluster of the given number of shards.
func inShards(t testing.TB, server *servers.Server, n int) *Store {
	s := connect(t, Options{URL: server.URL})
	s.shards = Divided(n)
	s.seen = newSeen(s.shards)
	return s
}

// chargeIn charges one unit of a bucket in a shard.
func chargeIn(shard Shard, id string) algorithms.Decide {
	c := charge(id, 10, 1)
	c.Buckets[0].Key = BucketKey(shard, id)
	return c
}

// statuses returns how a charge ends in each shard, and how much it was admitted.
func statuses(t testing.TB, s *Store, id string) (all []algorithms.Status, units []quantity.Units) {
	t.Helper()
	var calls []algorithms.Decide
	for _, shard := range s.shards {
		calls = append(calls, chargeIn(shard, id))
	}
	for _, r := range s.Decide(context.Background(), calls) {
		d := must(t, r)
		all, units = append(all, d.Status), append(units, admitted(d))
	}
	return all, units
}

// TestShardsOf: an entity is always in the same shard, and entities are spread over all.
func TestShardsOf(t *testing.T) {
	all := Divided(len(clusterTags))
	counts := map[Shard]int{}
	for i := range 12_000 {
		counts[all.Of(fmt.Sprint("account-", i))]++
	}
	for _, shard := range all {
		if n := counts[shard]; n < 800 || n > 1200 {
			t.Errorf("shard %s has %d of 12000 entities", shard, n)
		}
	}
	if got := all.Of("account-42"); got != "{quotad:3.14}" {
		t.Errorf("account-42 is in %s: an entity's keys would be looked for where they are not",
			got)
	}
	if got := Shards(nil).Of("account-42"); got != Whole {
		t.Errorf("a store that is not divided has the shard %s", got)
	}
	for key, want := range map[string]Shard{BucketKey(Whole, "}"): Whole,
		TokenKey("{quotad:7}"): "{quotad:7}", "quotad": "", "{quotad": "", "": ""} {
		if got := ShardOf(key); got != want {
			t.Errorf("key %q is in shard %q, want %q", key, got, want)
		}
	}
}

// TestKeysInSeveralShards: a call whose keys are not all in one shard is refused; the others of the
// list run.
func TestKeysInSeveralShards(t *testing.T) {
	s := inShards(t, fixtures.Started(t)(servers.StartEmbedded(t.Context())), 4)
	mustOpen(t, s, first)
	wrong, strange := chargeIn(s.shards[0], "k"), chargeIn(s.shards[0], "k")
	wrong.Buckets = append(wrong.Buckets, chargeIn(s.shards[1], "k").Buckets...)
	strange.Buckets[0].Key = "k"
	r := s.Decide(t.Context(), []algorithms.Decide{chargeIn(s.shards[3], "k"), wrong, strange,
		chargeIn(s.shards[0], "k")})
	for i, words := range map[int]string{1: "in the shards {quotad:0.72} and {quotad:1.31}",
		2: "none of quotad's"} {
		if r[i].Err == nil || !strings.Contains(r[i].Err.Error(), words) {
			t.Errorf("%v does not say %q", r[i].Err, words)
		}
	}
	for _, i := range []int{0, 3} {
		if d := must(t, r[i]); admitted(d) != 1 || d.Buckets[0].Used != 1 {
			t.Errorf("call %d: %+v", i, d)
		}
	}
}

// TestLossOfOneShard: a store that has lost one of its shards begins another generation. In it that
// shard's cells are closed, and the other shards go on as before.
func TestLossOfOneShard(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		for lost := range 3 {
			server := kind.start(t)
			s, mate := inShards(t, server, 3), inShards(t, server, 3)
			mustOpen(t, s, first)
			mustOpen(t, mate, first)
			statuses(t, s, "k")
			fixtures.Operator(t, server).Del(t.Context(), TokenKey(s.shards[lost]))
			all, _ := statuses(t, mate, "k")
			for i, status := range all {
				if (status == algorithms.StatusUnknown) != (i == lost) {
					t.Errorf("shard %d, %d lost: %v", i, lost, status)
				}
			}
			known := s.Generation()
			opened := mustOpen(t, s, Opening{Region: "eu", Epoch: epoch, LastGeneration: known})
			if !opened.Lost || opened.Generation <= known || s.Secret() == mate.Secret() {
				t.Errorf("opened %+v after generation %d", opened, known)
			}
			if all, _ := statuses(t, mate, "k"); all[0] != algorithms.StatusUnknown ||
				all[2] != algorithms.StatusUnknown {
				t.Errorf("the mate works under a generation that is over: %v", all)
			}
			if took := mustOpen(t, mate, Opening{Region: "eu", Epoch: epoch,
				LastGeneration: known}); !took.took(opened.Generation) {
				t.Errorf("the mate opened %+v", took)
			}
			all, units := statuses(t, mate, "k")
			for i := range all {
				if all[i] != algorithms.StatusOK || (units[i] == 0) != (i == lost) {
					t.Errorf("shard %d, %d lost: %v, %d admitted", i, lost, all[i], units[i])
				}
			}
		}
	})
}

// stopping is a topology that fails after a number of calls, as if the node had died.
type stopping struct {
	topology
	left atomic.Int64
}

var errStopped = errors.New("stopped here")

func (s *stopping) master(ctx context.Context, shard Shard) (*redis.Client, error) {
	if s.left.Add(-1) < 0 {
		return nil, errStopped
	}
	return s.topology.master(ctx, shard)
}

// TestOpenInterrupted: wherever a node stops while it opens the store, the next node brings it to
// one generation in which all shards serve, or are closed if data may have been lost. A third node
// takes that generation.
func TestOpenInterrupted(t *testing.T) {
	cases := map[string]struct {
		// an opening that was finished, before a loss of one shard; none if it has no region
		before Opening
		dies   Opening
		next   Opening
		lost   bool
	}{
		"never served": {dies: first, next: first},
		"never served, no flag": {dies: first, next: Opening{Region: "eu", Epoch: epoch},
			lost: true},
		"lost, by one that knows": {before: first,
			dies: Opening{Region: "eu", Epoch: epoch, LastGeneration: 7},
			next: Opening{Region: "eu",
				Epoch: epoch, LastGeneration: 7}, lost: true},
		"lost, by one that knows nothing": {before: first,
			dies: Opening{Region: "eu", Epoch: epoch, LastGeneration: 7}, next: first, lost: true},
		"lost, under another's newer file": {before: first,
			dies: Opening{Region: "eu", Epoch: "2-b", LastGeneration: 7},
			next: Opening{Region: "eu",
				Epoch: "2-b", LastGeneration: 7}, lost: true},
	}
	onBoth(t, func(t *testing.T, kind server) {
		for name, c := range cases {
			server := kind.start(t)
			for steps := int64(0); ; steps++ {
				fixtures.Operator(t, server).FlushAll(t.Context())
				if c.before.Region != "" {
					s := inShards(t, server, 3)
					mustOpen(t, s, c.before)
					fixtures.Operator(t, server).Del(t.Context(), TokenKey(s.shards[steps%3]))
				}
				dying := inShards(t, server, 3)
				redis := dying.servers.(*redisServers)
				stop := &stopping{topology: redis.topology}
				stop.left.Store(steps)
				redis.topology = stop
				_, err := dying.Open(t.Context(), c.dies)
				if err != nil && !errors.Is(err, errStopped) {
					t.Fatal(err)
				}
				if err != nil && dying.Generation() != 0 {
					t.Errorf("%s, %d steps: works under generation %d after %v", name, steps,
						dying.Generation(), err)
				}
				next, third := inShards(t, server, 3), inShards(t, server, 3)
				opened := mustOpen(t, next, c.next)
				if took := mustOpen(t, third, c.next); !took.took(opened.Generation) ||
					third.Secret() != next.Secret() {
					t.Errorf("%s, %d steps: the third opened %+v, the second %+v", name, steps,
						took, opened)
				}
				if c.lost && err != nil && !opened.Lost && next.Generation() == dying.Generation() {
					t.Errorf("%s, %d steps: nobody says that data may be lost", name, steps)
				}
				if c.next.Epoch == epoch {
					all, units := statuses(t, third, "k")
					total := units[0] + units[1] + units[2]
					if all[0]+all[1]+all[2] != algorithms.StatusOK || (total == 3) == c.lost &&
						err != nil && steps > 0 && steps < 3 {
						t.Errorf("%s, %d steps: %v, admitted %v", name, steps, all, units)
					}
				}
				if err == nil {
					break
				}
			}
		}
	})
}

// unreachable is a topology in which nobody reaches one shard.
type unreachable struct {
	topology
	shard Shard
}

func (u *unreachable) master(ctx context.Context, shard Shard) (*redis.Client, error) {
	if shard == u.shard {
		return nil, errStopped
	}
	return u.topology.master(ctx, shard)
}

// TestAdoptNeedsAllShards: while one shard is out of reach, no other takes the new epoch. It would
// refuse the old one, which the node goes on with.
func TestAdoptNeedsAllShards(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		s := inShards(t, kind.start(t), 3)
		mustOpen(t, s, first)
		redis := s.servers.(*redisServers)
		whole := redis.topology
		for _, away := range s.shards {
			redis.topology = &unreachable{whole, away}
			if _, err := s.Adopt(t.Context(), "2-b"); !errors.Is(err, errStopped) {
				t.Errorf("adopted without %s: %v", away, err)
			}
			redis.topology = whole
			if all, _ := statuses(t, s, "k"); sum(all) != 0 {
				t.Errorf("%s was away: %v under the epoch that is in force", away, all)
			}
		}
		if _, err := s.Adopt(t.Context(), "2-b"); err != nil {
			t.Error(err)
		}
	})
}

// TestOpenShardsTogether: nodes that open all shards at the same time end under one generation and
// secret.
func TestOpenShardsTogether(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		for _, o := range []Opening{first, {Region: "eu", Epoch: epoch, LastGeneration: 1}} {
			server := kind.start(t)
			nodes := make([]*Store, 6)
			var all sync.WaitGroup
			for i := range nodes {
				nodes[i] = inShards(t, server, 8)
				all.Go(func() {
					if _, err := nodes[i].Open(context.Background(), o); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			for _, s := range nodes { // one that was overtaken is told so by its next call
				for all, _ := statuses(t, s, "k"); sum(all) != 0; all, _ = statuses(t, s, "k") {
					mustOpen(t, s, Opening{Region: "eu", Epoch: epoch,
						LastGeneration: s.Generation()})
				}
			}
			for _, s := range nodes {
				all, units := statuses(t, s, "other")
				if s.Generation() != nodes[0].Generation() || s.Secret() != nodes[0].Secret() ||
					sum(all) != 0 {
					t.Errorf("generation %d and %d, %v", s.Generation(), nodes[0].Generation(), all)
				}
				for _, n := range units {
					if o.Bootstrap != (n == 1) {
						t.Errorf("%+v: %d admitted, want %v", o, n, o.Bootstrap)
					}
				}
			}
		}
	})
}

func sum(all []algorithms.Status) (n algorithms.Status) {
	for _, s := range all {
		n += s
	}
	return n
}

// TestIdentity: an answer from a server with other data than those the store was opened on does not
// count, and the store is opened anew as one that lost data, since nobody asks the other node to
// confirm them. The server here was a replica for a moment: its token and scripts are still there.
func TestIdentity(t *testing.T) {
	server := fixtures.Process(t)
	s, mate, client := node(t, server, first), node(t, server, as("n2", 0, nil)), fixtures.Operator(t, server)
	serves(t, s, "k")
	serves(t, mate, "k")
	before := s.Generation()
	suite.Must(t, errors.Join(client.ReplicaOf(t.Context(), "127.0.0.1", "1").Err(),
		client.ReplicaOf(t.Context(), "NO", "ONE").Err()))
	allAre(t, s, "k", algorithms.StatusUnknown)
	if got, err := s.Settle(t.Context(), algorithms.Settle{Fence: under(epoch),
		Receipt: SettleKey(Whole, "r"), Once: OnceKey(Whole, "none"), Cost: 1}); !errors.Is(err,
		ErrUnknownStore) {
		t.Errorf("refund: %+v, %v", got, err)
	}
	o := Opening{Region: "eu", Epoch: epoch, LastGeneration: before}
	opened := mustOpen(t, s, o)
	if !opened.Lost || opened.Generation <= before {
		t.Errorf("opened %+v after generation %d", opened, before)
	}
	closedCells(t, s, epoch)
	if took := mustOpen(t, mate, o); !took.took(opened.Generation) {
		t.Errorf("the mate opened %+v", took)
	}
	closedCells(t, mate, epoch)
}
