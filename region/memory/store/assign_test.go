package store

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/quantity"
)

// assignable returns the terms of a token bucket of 100 in an hour, with one cell for all times.
func assignable() algorithms.Terms {
	return algorithms.Terms{Kind: algorithms.TokenBucket, Window: hourLong, Cell: long, Tick: 1,
		Entitlement: 100, Burst: 100}
}

// longCell is the number of that cell.
func longCell() quantity.Cell { return quantity.Cell(time.Now().UnixMicro() / long) }

// holding is a call of a node about a bucket in a shard.
func holding(shard Shard, id, node string, held, returned quantity.Units) algorithms.Assign {
	return algorithms.Assign{Fence: under(epoch), Target: algorithms.Target{Key: BucketKey(shard,
		id), Terms: assignable()}, Holder: node, Cell: longCell(), Held: held, Returned: returned}
}

func assign(t testing.TB, s *Store, c algorithms.Assign) algorithms.Assigned {
	t.Helper()
	return must(t, s.Assign(t.Context(), []algorithms.Assign{c})[0])
}

// TestAssign: calls run in order. What nodes hold is neither admitted nor lent nor held by another
// node, and the region's share stays what it is.
func TestAssign(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		s, mate := node(t, server, first), node(t, server, first)
		var held []quantity.Units
		for _, r := range s.Assign(t.Context(), []algorithms.Assign{
			holding(Whole, "k", "n1", 60, 0), holding(Whole, "k", "n2", 60, 0),
			holding(Whole, "k", "n1", 60, 10), holding(Whole, "k", "n2", 60, 0),
			holding(Whole, "other", "n1", 7, 0)}) {
			g := must(t, r)
			if g.Status != algorithms.StatusOK || g.Share != 100 || g.NextShare != 100 {
				t.Errorf("%+v", g)
			}
			held = append(held, g.Held-g.Returned)
		}
		if want := []quantity.Units{60, 40, 50, 50, 7}; !slices.Equal(held, want) {
			t.Errorf("held %d, want %d", held, want)
		}
		target := algorithms.Target{Key: BucketKey(Whole, "k"), Terms: assignable()}
		if g := lend(t, mate, algorithms.Lend{Fence: under(epoch), Target: target,
			Debit: algorithms.Debit{Peer: "us",
				Cell: longCell(), Lent: 10, Cap: 100}}); g.Row.Lent != 0 || g.Spare != 0 {
			t.Errorf("lent all the same: %+v", g)
		}
		d := decide(t, mate, algorithms.Decide{Fence: under(epoch), Commit: true,
			Buckets: []algorithms.LimitTarget{{Target: target}}, Costs: []quantity.Units{100, 1}})
		if b := d.Buckets[0]; admitted(d) != 1 || b.Share != 100 || b.Free != 0 {
			t.Errorf("the tokens are still those of the store: %+v", d)
		}
		// Nothing refills the bucket before the cell ends.
		ends := (longCell() + 1).OpensAt(long).Sub(d.Now)
		if retry := d.Answers[1].Verdicts[0].Retry; retry < ends {
			t.Errorf("a token in %d us, and the cell ends in %d", retry, ends)
		}
	})
}

// TestAssignTogether: however many nodes ask for more than there is, all at once, they hold what
// there is and no more.
func TestAssignTogether(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		const nodes, calls = 5, 12
		held := make([]quantity.Units, nodes)
		var work sync.WaitGroup
		for n := range nodes {
			s := node(t, server, first)
			work.Go(func() {
				for range calls {
					r := s.Assign(t.Context(), []algorithms.Assign{holding(Whole, "k",
						fmt.Sprint("n", n), held[n]+3, 0)})[0]
					if r.Err != nil {
						t.Errorf("node %d: %v", n, r.Err)
					}
					held[n] = r.Value.Held
				}
			})
		}
		work.Wait()
		var sum quantity.Units
		for _, h := range held {
			sum += h
		}
		if sum != 100 {
			t.Errorf("%d are held of 100: %d", sum, held)
		}
	})
}

// TestLostReplyHoldsOnce: a call whose reply is lost is an error, and may have run. Sent again, it
// holds nothing twice.
func TestLostReplyHoldsOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		r := newRelay(t, kind.start(t))
		s := connect(t, Options{URL: r.url})
		mustOpen(t, s, first)
		assign(t, s, holding(Whole, "k", "n1", 30, 0))
		r.sever.Store(true)
		again := holding(Whole, "k", "n1", 50, 20)
		if got := s.Assign(t.Context(), []algorithms.Assign{again})[0]; got.Err == nil {
			t.Fatalf("an answer without a reply: %+v", got)
		}
		for range 2 {
			if g := assign(t, s, again); g.Held != 50 || g.Returned != 20 || g.Spare != 70 {
				t.Errorf("%+v", g)
			}
		}
	})
}

// TestAssignedKeysOutliveTheirUse: a bucket of which nothing but rights of the next cell were ever
// assigned lasts until a second after the end of that cell, and not for ever.
func TestAssignedKeysOutliveTheirUse(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		s, client := node(t, server, first), fixtures.Operator(t, server)
		c := holding(Whole, "k", "n1", 5, 0)
		c.Terms.Cell = minuteLong
		c.Cell = inspect(t, s, "k", c.Terms).Cell + 1
		g := assign(t, s, c)
		least := c.Terms.Weighs(c.Cell) + algorithms.KeySlack
		between(t, "the bucket", endsAt(t, client, c.Key), least,
			least.Add(c.Terms.FillTime()+2*minuteLong))
		if g.ExistsUntil < c.Terms.Weighs(c.Cell) {
			t.Errorf("known to be there until %d, and the cell ends at %d", g.ExistsUntil,
				c.Terms.Weighs(c.Cell))
		}
	})
}

// TestADeletedAssignmentIsMissed: a bucket that held only what a node has of the next cell is
// deleted when that cell has begun. Envoys may still admit with it, so the store holds no rights of
// the cell, and nobody can hold them anew.
func TestADeletedAssignmentIsMissed(t *testing.T) {
	now := time.UnixMicro(180_000_000 * 10_000_000)
	server := fixtures.Started(t)(servers.StartDriven(func() time.Time { return now }))
	s, client := node(t, server, first), fixtures.Operator(t, server)
	c := holding(Whole, "k", "n1", 100, 0)
	c.Terms.Cell = 10_000_000
	c.Cell = c.Terms.CellAt(quantity.StoreTime(now.UnixMicro())) + 1
	g := assign(t, s, c)
	if g.Held != 100 {
		t.Fatalf("%+v", g)
	}
	c.ExistsUntil = g.ExistsUntil
	now = now.Add(15 * time.Second)
	if gone := client.Del(t.Context(), c.Key).Val(); gone != 1 {
		t.Fatalf("%d keys deleted", gone)
	}
	c.Holder = "n2"
	for range 2 {
		if g := assign(t, s, c); g.Status != algorithms.StatusRecovering || g.Share != 0 {
			t.Errorf("%+v", g)
		}
	}
	d := decide(t, s, algorithms.Decide{Fence: under(epoch), Commit: true,
		Buckets: []algorithms.LimitTarget{{Target: c.Target}}, Costs: []quantity.Units{1}})
	if admitted(d) != 0 {
		t.Errorf("admitted: %+v", d)
	}
}

// TestAssignOnACluster: calls over all masters come back in order, and each bucket's nodes share
// its rights. A call whose bucket is in no shard is refused, and the others run.
func TestAssignOnACluster(t *testing.T) {
	t.Parallel()
	server := fixtures.Started(t)(servers.StartCluster(t.Context(), 3))
	s, mate := node(t, server, first), node(t, server, first)
	const buckets = 60
	calls := func(node string) (all []algorithms.Assign) {
		for i := range buckets {
			all = append(all, holding(s.Shard(fmt.Sprint(i)), fmt.Sprint(i), node,
				quantity.Units(50+i), 0))
		}
		return all
	}
	for range 2 { // the first time the servers do not know the script
		for i, r := range s.Assign(t.Context(), calls("n1")) {
			if g := must(t, r); g.Held != quantity.Units(min(50+i, 100)) {
				t.Errorf("bucket %d: %+v", i, g)
			}
		}
		for i, r := range mate.Assign(t.Context(), calls("n2")) {
			if g := must(t, r); g.Held != quantity.Units(max(50-i, 0)) || g.Spare != 0 {
				t.Errorf("bucket %d, the mate: %+v", i, g)
			}
		}
	}
	strange := holding(Whole, "k", "n1", 1, 0)
	strange.Key = "k"
	r := s.Assign(t.Context(), []algorithms.Assign{strange, holding(s.Shard("x"), "x", "n1", 1, 0)})
	if r[0].Err == nil || must(t, r[1]).Held != 1 {
		t.Errorf("%+v", r)
	}
}
