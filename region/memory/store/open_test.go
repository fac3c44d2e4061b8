package store

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// TestOpenEmpty: the first start of a region that never served begins a generation and serves at
// once.
func TestOpenEmpty(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		s := connect(t, Options{URL: kind.start(t).URL})
		allAre(t, s, "k", algorithms.StatusUnknown) // before Open
		if n := s.Generation(); n != 0 {
			t.Errorf("generation %d before Open", n)
		}
		opened := mustOpen(t, s, first)
		if opened.Lost || opened.Generation == 0 || opened.Generation != s.Generation() {
			t.Errorf("opened %+v, works under generation %d", opened, s.Generation())
		}
		allAre(t, s, "k", algorithms.StatusOK)
		again := mustOpen(t, s, first)
		again.Now = opened.Now
		if again != opened {
			t.Errorf("opened again %+v, want %+v", again, opened)
		}
	})
}

// TestOpenLost: an empty store that may have served before begins a generation above any known,
// with closed cells.
func TestOpenLost(t *testing.T) {
	openings := map[string]Opening{
		"not bootstrapped": {Region: "eu", Epoch: epoch},
		"known":            {Region: "eu", Epoch: epoch, LastGeneration: 4},
		"known, and a stale flag": {Region: "eu", Epoch: epoch, LastGeneration: 4,
			Bootstrap: true},
		"known, beyond the clock":  {Region: "eu", Epoch: epoch, LastGeneration: 1 << 50},
		"known, beyond a double's": {Region: "eu", Epoch: epoch, LastGeneration: 1<<53 + 1},
	}
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		for name, opening := range openings {
			t.Run(name, func(t *testing.T) {
				fixtures.Operator(t, server).FlushAll(t.Context())
				s := connect(t, Options{URL: server.URL})
				if got := mustOpen(t, s, opening); !got.Lost ||
					got.Generation <= opening.LastGeneration {
					t.Fatalf("opened %+v, want a loss and a generation above %d", got,
						opening.LastGeneration)
				}
				closedCells(t, s, epoch)
			})
		}
	})
}

// TestNodesBeginDifferentGenerations: two nodes begin generations in a store that lost its data
// twice, and neither knows of the other's. The last one that both know is ahead of their clocks.
// They choose different numbers all the same.
func TestNodesBeginDifferentGenerations(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		now := time.Now()
		ahead := uint64(now.Add(10 * time.Minute).UnixMilli())
		begun := map[uint64]bool{}
		for range 4 {
			fixtures.Operator(t, server).FlushAll(t.Context())
			s := connect(t, Options{URL: server.URL, Now: func() time.Time { return now }})
			got := mustOpen(t, s, Opening{Region: "eu", Epoch: epoch, LastGeneration: ahead})
			if begun[got.Generation] || got.Generation <= ahead ||
				got.Generation > ahead+algorithms.GenerationStep {
				t.Errorf("generation %d after %d and beside %v", got.Generation, ahead, begun)
			}
			begun[got.Generation] = true
			now = now.Add(123_457 * time.Microsecond)
		}
	})
}

// TestGenerationsAscend: each generation of a store is larger than those before, even where nobody
// remembers them.
func TestGenerationsAscend(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		now := time.Now()
		last := uint64(0)
		for range 5 {
			fixtures.Operator(t, server).FlushAll(t.Context())
			s := connect(t, Options{URL: server.URL, Now: func() time.Time { return now }})
			got := mustOpen(t, s, Opening{Region: "eu", Epoch: epoch})
			if got.Generation <= last {
				t.Errorf("generation %d after %d", got.Generation, last)
			}
			last = got.Generation
			now = now.Add(time.Millisecond)
		}
	})
}

// closedCells: after a loss this cell and the next admit, lend and credit nothing.
func closedCells(t *testing.T, s *Store, epoch string) {
	t.Helper()
	c := charge("k", 10, 1)
	c.Fence = under(epoch)
	d := decide(t, s, c)
	if d.Status != algorithms.StatusOK || admitted(d) != 0 || d.Buckets[0].Share != 0 ||
		d.Buckets[0].NextShare != 0 {
		t.Fatalf("decide %+v, want a denial with no rights", d)
	}
	if got, want := quantity.Cell(int64(d.Now.Add(d.Answers[0].Verdicts[0].Retry))/long),
		d.Buckets[0].Cell+2; got != want {
		t.Errorf("retry leads to cell %d, want %d", got, want)
	}
	for _, cell := range []quantity.Cell{d.Buckets[0].Cell, d.Buckets[0].Cell + 1} {
		g := lend(t, s, algorithms.Lend{Fence: c.Fence,
			Target: algorithms.Target{Key: BucketKey(Whole, "k"), Terms: terms(10)},
			Debit: algorithms.Debit{Peer: "us",
				Cell: cell, Lent: 1, Cap: 10}})
		r := credit(t, s, algorithms.Credit{Fence: c.Fence,
			Target: algorithms.Target{Key: BucketKey(Whole, "k"), Terms: terms(10)},
			Announcement: algorithms.Announcement{Peer: "us",
				PeerGeneration: 1, Cell: cell, Lent: 1, Most: 10}})
		closed := func(s algorithms.Status) bool {
			return s == algorithms.StatusRecovering || cell > d.Buckets[0].Cell && s == algorithms.StatusFinished // too far ahead
		}
		if !closed(g.Status) || !closed(r.Status) {
			t.Errorf("cell %d: lend %v, credit %v; want %v", cell, g.Status, r.Status,
				algorithms.StatusRecovering)
		}
	}
	if got := inspect(t, s, "untouched", terms(10)); got.Status == algorithms.StatusOK &&
		(got.Share != 0 || got.NextShare != 0) {
		t.Errorf("another bucket has rights: %+v", got)
	}
}

// TestLostCellsPass: the second cell after the one of the loss serves, and none before it does.
func TestLostCellsPass(t *testing.T) {
	const window = 200_000
	of := algorithms.Terms{Kind: algorithms.FixedWindow, Window: window, Cell: window, Tick: 1,
		Entitlement: 1 << 40}
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		s := node(t, server, Opening{Region: "eu", Epoch: epoch})
		lostAt, err := fixtures.Operator(t, server).HGet(t.Context(), TokenKey(Whole),
			"lost_at").Int64()
		suite.Must(t, err)
		opens := quantity.Cell(lostAt/window + 2)
		for {
			d := decide(t, s, algorithms.Decide{Fence: under(epoch), Commit: true,
				Costs: []quantity.Units{1},
				Buckets: []algorithms.LimitTarget{{Target: algorithms.Target{Key: BucketKey(Whole,
					"k"), Terms: of}}}})
			cell := d.Buckets[0].Cell
			g := lend(t, s, algorithms.Lend{Fence: under(epoch),
				Target: algorithms.Target{Key: BucketKey(Whole, "k"), Terms: of},
				Debit: algorithms.Debit{Peer: "us",
					Cell: cell + 1, Lent: 1, Cap: 1}})
			if served := admitted(d) == 1; served != (cell >= opens) {
				t.Fatalf("cell %d, lost until %d: admitted %v", cell, opens, served)
			}
			if cell == g.Cell && (g.Status == algorithms.StatusRecovering) != (cell+1 < opens) {
				t.Fatalf("lending of cell %d, lost until %d: %v", cell+1, opens, g.Status)
			}
			if cell >= opens {
				return
			}
		}
	})
}

// TestOpenStanding: a store that stands is taken as it is, by a node that knows it and by one that
// knows nothing.
func TestOpenStanding(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		a := node(t, server, Opening{Region: "eu", Epoch: epoch, LastGeneration: 6})
		for _, known := range []uint64{0, 3, 6, a.Generation()} {
			b := connect(t, Options{URL: server.URL})
			got := mustOpen(t, b, Opening{Region: "eu", Epoch: epoch, LastGeneration: known,
				Bootstrap: true})
			if want := a.Generation(); !got.took(want) || b.Generation() != want {
				t.Errorf("known %d: opened %+v, want %+v", known, got, want)
			}
			closedCells(t, b, epoch) // taking a store ends no recovery
		}
		closedCells(t, a, epoch)
	})
}

// TestOpenHiddenLoss: a store that stands, but without something that this node knows it had, is
// opened anew: data were lost.
func TestOpenHiddenLoss(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		for _, known := range []string{"an older copy", "bootstrapped by a mate"} {
			t.Run(known, func(t *testing.T) {
				server := kind.start(t)
				mate := node(t, server, first)
				serves(t, mate, "k")
				before := mate.Generation()
				o := Opening{Region: "eu", Epoch: epoch, LastGeneration: before + 1}
				if known == "bootstrapped by a mate" {
					o.LastGeneration = before - 1
				}
				s := connect(t, Options{URL: server.URL})
				got := mustOpen(t, s, o)
				if !got.Lost || got.Generation <= max(before, o.LastGeneration) ||
					s.Generation() != got.Generation {
					t.Fatalf("opened %+v over generation %d, knowing of %d", got, before,
						o.LastGeneration)
				}
				closedCells(t, s, epoch)
				allAre(t, mate, "k", algorithms.StatusUnknown)
				if got := mustOpen(t, mate, Opening{Region: "eu", Epoch: epoch,
					LastGeneration: before}); got.Generation != s.Generation() || got.Lost {
					t.Errorf("the mate opened %+v, want generation %d", got, s.Generation())
				}
				closedCells(t, mate, epoch)
			})
		}
	})
}

// TestOpenAnotherRegion: another region's store is left alone, and the message says what to do.
func TestOpenAnotherRegion(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		owner := node(t, server, first)
		for _, known := range []uint64{0, 1, owner.Generation(), owner.Generation() + 1} {
			s := connect(t, Options{URL: server.URL})
			_, err := s.Open(t.Context(), Opening{Region: "us", Epoch: "2-b", LastGeneration: known,
				Bootstrap: true})
			for _, words := range []string{`region "eu"`, `of "us"`, "a Redis of its own",
				address(server)} {
				if err == nil || !strings.Contains(err.Error(), words) {
					t.Errorf("known %d: %v does not say %q", known, err, words)
				}
			}
			allUnder(t, s, "2-b", "k", algorithms.StatusUnknown)
			allAre(t, s, "k", algorithms.StatusUnknown)
		}
		allAre(t, owner, "k", algorithms.StatusOK)
	})
}

// TestOpenTogether: of nodes that find the store empty at the same time one opens it, the others
// take it.
func TestOpenTogether(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		nodes := make([]*Store, 8)
		opened := make([]Opened, len(nodes))
		errs := make([]error, len(nodes))
		var all, looked sync.WaitGroup
		looked.Add(len(nodes))
		for i := range nodes {
			nodes[i] = connect(t, Options{URL: server.URL})
			// Each finds the store empty before any of them opens it.
			once := sync.OnceFunc(func() {
				looked.Done()
				looked.Wait()
			})
			mayBegin := func(context.Context, Beginning) (Told, error) {
				once()
				return Told{}, nil
			}
			all.Go(func() {
				opened[i], errs[i] = nodes[i].Open(context.Background(),
					Opening{Region: "eu", Epoch: epoch, LastGeneration: 1, MayBegin: mayBegin})
			})
		}
		all.Wait()
		lost := 0
		for _, o := range opened {
			if o.Lost {
				lost++
			}
		}
		if lost != 1 {
			t.Errorf("%d nodes opened the store anew", lost)
		}
		for i, o := range opened {
			if errs[i] != nil || o.Generation != opened[0].Generation || o.Generation <= 1 {
				t.Fatalf("node %d: %+v, %v; the first %+v", i, o, errs[i], opened[0])
			}
			closedCells(t, nodes[i], epoch)
		}
	})
}
