//go:build !race

package algorithms_test

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// partlyKnown is a region, a, of three with 100 units each a day, whose store lost the bucket "k"
// under generation 7.
type partlyKnown struct {
	algorithms.Twin
	now, lostAt quantity.StoreTime
	terms       algorithms.Terms
}

// newPartlyKnown has the store lose everything except what before leaves in it.
func newPartlyKnown(t *testing.T, before func(p *partlyKnown)) *partlyKnown {
	t.Helper()
	const day = int64(86_400_000_000)
	p := &partlyKnown{now: quantity.StoreTime(20_000*day + day/2),
		terms: algorithms.Terms{Kind: algorithms.FixedWindow, Window: day, Cell: day, Tick: 1,
			Entitlement: 100, Recovered: true}}
	p.Open(p.now, algorithms.Open{Generation: 6, Region: "a", Epoch: "1-e"})
	before(p)
	p.now += 1000
	o := p.Open(p.now, algorithms.Open{Expected: p.Generation, Generation: 7, Region: "a",
		Epoch: "1-e", Lost: true, Seen: p.now})
	p.now, p.lostAt = p.now+1000, o.LostAt
	if d := p.spend(1); d.Status != algorithms.StatusLost || d.LostAt != p.lostAt {
		t.Fatalf("before it is restored: %+v", d)
	}
	return p
}

func (p *partlyKnown) guard() algorithms.Fence {
	return algorithms.Fence{Generation: p.Generation, Epoch: "1-e", Clock: p.now}
}

func (p *partlyKnown) cell() quantity.Cell { return quantity.Cell(int64(p.now) / p.terms.Cell) }

func (p *partlyKnown) spend(units quantity.Units) algorithms.Decided {
	return p.Decide(p.now, algorithms.Decide{Fence: p.guard(), Commit: true,
		Costs:   []quantity.Units{units},
		Buckets: []algorithms.LimitTarget{{Target: algorithms.Target{Key: "k", Terms: p.terms}}}})
}

// hear has a peer tell what it lent and returned in all.
func (p *partlyKnown) hear(peer string, lent, returned quantity.Units) algorithms.Credited {
	return p.Credit(p.now, algorithms.Credit{Fence: p.guard(), Target: algorithms.Target{Key: "k",
		Terms: p.terms},
		Announcement: algorithms.Announcement{Peer: peer, PeerGeneration: 3, Cell: p.cell(),
			Lent: lent, Returned: returned, Most: 100}})
}

// Before the loss b was lent 100 and gave them back, then c was lent 100. b reports, c is away, and
// what b gave back is heard once more. While c may hold all that may be lent, it frees nothing.
func TestReturnsFreeNothingWhileAPeerIsUnknown(t *testing.T) {
	p := newPartlyKnown(t, func(p *partlyKnown) { p.Flush() })
	restore := algorithms.Restore{Fence: p.guard(), Target: algorithms.Target{Key: "k",
		Terms: p.terms}, LostAt: p.lostAt,
		Known: algorithms.Known{Cap: 100, KnownPeers: []string{"b"},
			UnknownPeers: []string{"c"},
			Rows:         []algorithms.RememberedRow{{Cell: p.cell(), Peer: "b", Lent: 100}}}}
	p.Restore(p.now, restore)
	if c := p.hear("b", 0, 100); c.Status != algorithms.StatusOK || c.Share != 0 {
		t.Errorf("share %d (%s) while c may hold 100", c.Share, c.Status)
	}
	if d := p.spend(1); d.Status != algorithms.StatusOK || d.Answers[0].Admitted ||
		d.Buckets[0].Doubt != p.lostAt {
		t.Errorf("while c may hold 100: %+v", d)
	}
	restore.KnownPeers, restore.UnknownPeers = []string{"b", "c"}, nil
	restore.Rows = append(restore.Rows, algorithms.RememberedRow{Cell: p.cell(), Peer: "c",
		Lent: 70})
	p.Restore(p.now, restore)
	if c := p.hear("b", 0, 100); c.Share != 30 {
		t.Errorf("share %d: c holds 70, and b gave all back", c.Share)
	}
	if d := p.spend(30); !d.Answers[0].Admitted || d.Buckets[0].Doubt != 0 {
		t.Errorf("c has told: %+v", d)
	}
}

// A replica that lags is promoted. It knows that c lent 30. It does not know that these were
// returned to c since, and that 50 were lent to c. c is away.
func TestAnOldCopyBorrowsNothingOfAnUnknownPeer(t *testing.T) {
	p := newPartlyKnown(t, func(p *partlyKnown) {
		if c := p.hear("c", 30, 0); c.Share != 130 {
			t.Fatalf("%+v", c)
		}
	})
	r := p.Restore(p.now, algorithms.Restore{Fence: p.guard(), Target: algorithms.Target{Key: "k",
		Terms: p.terms}, LostAt: p.lostAt,
		Known: algorithms.Known{Cap: 50, UnknownPeers: []string{"c"}}})
	if r.Status != algorithms.StatusOK || r.Share != 50 {
		t.Errorf("share %d of 100, of which c holds 50 (%s): %+v", r.Share, r.Status, r.Rows)
	}
}

// A replica that lags is promoted. It knows that 4 were lent to b, but not that 90 were lent to c
// since. Before anybody notices the old copy, it debits 40 more for b, and nobody hears of them.
// Those 40 must not be announced afterwards.
func TestAnOldCopyKeepsNoDebitThatNobodyHeardOf(t *testing.T) {
	lend := func(p *partlyKnown, peer string, lent quantity.Units) algorithms.Given {
		return p.Lend(p.now, algorithms.Lend{Fence: p.guard(), Target: algorithms.Target{Key: "k",
			Terms: p.terms},
			Debit: algorithms.Debit{Peer: peer, Cell: p.cell(), Lent: lent, Cap: 100}})
	}
	for name, known := range map[string][]string{"both are known": {"b", "c"}, "c alone is": {"c"},
		"b alone is": {"b"}} {
		t.Run(name, func(t *testing.T) {
			p := newPartlyKnown(t, func(p *partlyKnown) {
				lend(p, "b", 4)
				if g := lend(p, "b", 44); g.Row.Lent != 44 {
					t.Fatalf("%+v", g)
				}
			})
			r := algorithms.Restore{Fence: p.guard(), Target: algorithms.Target{Key: "k",
				Terms: p.terms}, LostAt: p.lostAt,
				Known: algorithms.Known{Cap: 100, KnownPeers: known}}
			for _, row := range []algorithms.RememberedRow{{Peer: "b", Lent: 4},
				{Peer: "c", Lent: 90}} {
				row.Cell = p.cell()
				r.Rows = append(r.Rows, row)
			}
			for _, peer := range []string{"b", "c"} {
				if len(known) == 1 && known[0] != peer {
					r.UnknownPeers = append(r.UnknownPeers, peer)
				}
			}
			p.Restore(p.now, r)
			if g := lend(p, "b", 4); g.Row.Lent > 4 || g.Share < 0 {
				t.Errorf("b is told that it was lent %d, with a share of %d left here", g.Row.Lent,
					g.Share)
			}
		})
	}
}

// Two nodes recover one bucket at once. The first restores it, and 60 are lent. The second then
// restores with answers it got earlier. The loss is over, so this changes nothing.
func TestTheSecondOfTwoRecoveriesChangesNothing(t *testing.T) {
	p := newPartlyKnown(t, func(p *partlyKnown) { p.Flush() })
	restore := algorithms.Restore{Fence: p.guard(), Target: algorithms.Target{Key: "k",
		Terms: p.terms}, LostAt: p.lostAt,
		Known: algorithms.Known{Cap: 100, KnownPeers: []string{"b", "c"},
			Rows: []algorithms.RememberedRow{{Cell: p.cell(), Peer: "b", Lent: 4}}}}
	p.Restore(p.now, restore)
	g := p.Lend(p.now, algorithms.Lend{Fence: p.guard(), Target: algorithms.Target{Key: "k",
		Terms: p.terms},
		Debit: algorithms.Debit{Peer: "c", Cell: p.cell(), Lent: 60, Cap: 100}})
	if g.Row.Lent != 60 {
		t.Fatalf("after the first: %+v", g)
	}
	if r := p.Restore(p.now, restore); r.Status != algorithms.StatusOK || r.Share != 36 {
		t.Errorf("after the second a share of %d (%s) of 100, of which b holds 4 and c 60", r.Share,
			r.Status)
	}
}

// A replica that lags is promoted. It knows that 10 were lent to b, of which 4 came back. Nobody
// else knows: the journal is an old copy, and b has lost its own store. That 4 came back proves
// that they were lent; otherwise the share would be 104 of 100.
func TestNoMoreComesBackThanWasLent(t *testing.T) {
	p := newPartlyKnown(t, func(p *partlyKnown) {
		p.Lend(p.now, algorithms.Lend{Fence: p.guard(), Target: algorithms.Target{Key: "k",
			Terms: p.terms},
			Debit: algorithms.Debit{Peer: "b", Cell: p.cell(), Lent: 10, Cap: 100}})
		if c := p.hear("b", 0, 4); c.Share != 94 {
			t.Fatalf("%+v", c)
		}
	})
	r := p.Restore(p.now, algorithms.Restore{Fence: p.guard(), Target: algorithms.Target{Key: "k",
		Terms: p.terms}, LostAt: p.lostAt,
		Known: algorithms.Known{Cap: 100, KnownPeers: []string{"b", "c"}}})
	if r.Status != algorithms.StatusOK || r.Share != 100 {
		t.Errorf("share %d of 100 (%s): %+v", r.Share, r.Status, r.Rows)
	}
}
