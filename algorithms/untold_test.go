//go:build !race

package algorithms_test

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// restoreUntold restores the bucket. A most above 0 says that not all nodes reported their use, and
// that most may have been used.
func (p *partlyKnown) restoreUntold(use algorithms.Use, most quantity.Units) algorithms.Restored {
	return p.Restore(p.now, algorithms.Restore{Fence: p.guard(), Target: algorithms.Target{Key: "k",
		Terms: p.terms}, LostAt: p.lostAt,
		Known: algorithms.Known{Cap: 100, KnownPeers: []string{"b", "c"},
			Use: use, Most: most}})
}

// newUntold is a region whose store lost everything, under a kind of limit.
func newUntold(t *testing.T, kind algorithms.Kind) *partlyKnown {
	t.Helper()
	return newPartlyKnown(t, func(p *partlyKnown) {
		p.terms.Kind, p.terms.Cell = kind, algorithms.CellLength(kind, p.terms.Window)
		p.Flush()
	})
}

// A node that may have admitted requests cannot be asked. Its use is not known and counts as the
// most possible. When it reports, the report counts instead.
func TestUseThatNobodyToldOfCountsAsAll(t *testing.T) {
	for _, kind := range windowKinds {
		t.Run(string(kind), func(t *testing.T) {
			p := newUntold(t, kind)
			use := algorithms.Use{Cell: p.cell(), Units: 10, At: p.lostAt - 1}
			if r := p.restoreUntold(use, 300); r.Status != algorithms.StatusOK || r.Free != 0 ||
				r.Shut <= p.now || r.Doubt != p.lostAt {
				t.Errorf("restored: %+v", r)
			}
			if d := p.spend(1); d.Status != algorithms.StatusOK || d.Answers[0].Admitted {
				t.Errorf("while a node is not heard: %+v", d)
			}
			if r := p.restoreUntold(algorithms.Use{Cell: p.cell(), Units: 60, At: p.lostAt - 1},
				300); r.Free != 0 {
				t.Errorf("another node told, and one did not: %+v", r)
			}
			if c := p.hear("b", 50, 0); c.Free != 0 {
				t.Errorf("%d are free of what was borrowed, which may have been used", c.Free)
			}
			if r := p.restoreUntold(algorithms.Use{Cell: p.cell(), Units: 60, At: p.lostAt - 1},
				0); r.Used != 60 || r.Free != 90 || r.Shut != 0 || r.Doubt != 0 {
				t.Errorf("all told: %+v", r)
			}
			if d := p.spend(90); !d.Answers[0].Admitted {
				t.Errorf("all told: %+v", d)
			}
			if d := p.spend(1); d.Answers[0].Admitted {
				t.Errorf("more than the share: %+v", d)
			}
		})
	}
}

// What was admitted without the store and charged since comes on top of what the nodes report.
func TestBookedUseComesOnTopOfWhatIsTold(t *testing.T) {
	for _, kind := range windowKinds {
		t.Run(string(kind), func(t *testing.T) {
			p := newUntold(t, kind)
			p.restoreUntold(algorithms.Use{}, 300)
			b := p.Book(p.now, algorithms.Book{Fence: p.guard(), Target: algorithms.Target{Key: "k",
				Terms: p.terms}, Node: "n1", Window: quantity.Cell(int64(p.now) / p.terms.Window),
				Units: 7})
			if b.Status != algorithms.StatusOK || !b.Done {
				t.Fatalf("%+v", b)
			}
			if r := p.restoreUntold(algorithms.Use{Cell: p.cell(), Units: 60, At: p.lostAt - 1},
				0); r.Used != 67 {
				t.Errorf("used %d of 60 told and 7 booked", r.Used)
			}
		})
	}
}

// A copy of the store knew of 4 used. When all nodes report 10, these are 10 in all; if they report
// 2, it stays 4.
func TestWhatACopyKnewIsPartOfWhatIsTold(t *testing.T) {
	for told, want := range map[quantity.Units]quantity.Units{10: 10, 2: 4} {
		p := newPartlyKnown(t, func(p *partlyKnown) {
			if d := p.spend(4); !d.Answers[0].Admitted {
				t.Fatalf("%+v", d)
			}
		})
		p.restoreUntold(algorithms.Use{}, 300)
		if r := p.restoreUntold(algorithms.Use{Cell: p.cell(), Units: told, At: p.lostAt - 1},
			0); r.Used != want {
			t.Errorf("used %d, the copy knew of 4 and the nodes of %d", r.Used, told)
		}
	}
}

// Use that nobody told of weighs as long as use does: a fixed window's until it ends, a counter's
// fades in the next, and an entry of the log leaves a window later.
func TestUseThatNobodyToldOfEnds(t *testing.T) {
	day := int64(86_400_000_000)
	// at the end of the day, six hours later, a day after the loss
	for kind, free := range map[algorithms.Kind][3]int64{
		algorithms.FixedWindow:          {100, 100, 100},
		algorithms.SlidingWindowCounter: {0, 0, 0},
		algorithms.SlidingWindowLog:     {0, 0, 100},
	} {
		t.Run(string(kind), func(t *testing.T) {
			p := newUntold(t, kind)
			lost := p.now
			p.restoreUntold(algorithms.Use{}, 200)
			for i, at := range []quantity.StoreTime{quantity.StoreTime((int64(lost)/day + 1) * day),
				quantity.StoreTime((int64(lost)/day+1)*day + day/4), lost.Add(day)} {
				p.now = at
				if d := p.spend(1); d.Answers[0].Admitted != (free[i] > 0) {
					t.Errorf("step %d: %+v", i, d)
				}
			}
			// 200 have faded to 50
			p.now = quantity.StoreTime((int64(lost)/day+1)*day + day*3/4 + 1)
			if d := p.spend(1); !d.Answers[0].Admitted {
				t.Errorf("when it has faded: %+v", d)
			}
		})
	}
}

// A reset by an operator also clears use that nobody told of.
func TestResetForgetsUseThatNobodyToldOf(t *testing.T) {
	for _, kind := range windowKinds {
		p := newUntold(t, kind)
		p.restoreUntold(algorithms.Use{}, 300)
		p.Reset(p.now, algorithms.Reset{Fence: p.guard(), Target: algorithms.Target{Key: "k",
			Terms: p.terms}})
		if d := p.spend(100); d.Status != algorithms.StatusOK || !d.Answers[0].Admitted {
			t.Errorf("%s: %+v", kind, d)
		}
	}
}

// A closed bucket that no node used, as all of them know, need not wait: it opens at once, whatever
// its kind and window.
func TestABucketThatNobodyUsedOpensAtOnce(t *testing.T) {
	for _, kind := range algorithms.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			p := newPartlyKnown(t, func(p *partlyKnown) {
				p.terms = algorithms.Terms{Kind: kind, Window: 10_000_000,
					Cell: algorithms.CellLength(kind, 10_000_000), Tick: 1, Entitlement: 100,
					Recovered: true}
				if kind.Bucket() {
					p.terms.Burst, p.terms.Recovered = 100, true
				}
				p.Flush()
			})
			p.terms.Recovered = false
			if d := p.spend(1); d.Answers[0].Admitted || d.Buckets[0].Shut <= p.now {
				t.Errorf("while it is closed: %+v", d)
			}
			p.restoreUntold(algorithms.Use{}, 0)
			if d := p.spend(100); !d.Answers[0].Admitted || d.Buckets[0].Shut != 0 {
				t.Errorf("nobody used it: %+v", d)
			}
			if d := p.spend(1); d.Answers[0].Admitted {
				t.Errorf("twice its burst: %+v", d)
			}
		})
	}
}

// A copy of a store is put back. It has the store's token and identity, but not what was charged
// since the copy was made. A node that it answered with a later time notices.
func TestALiveCopyIsNoticed(t *testing.T) {
	p := newPartlyKnown(t, func(p *partlyKnown) { p.Flush() })
	p.restoreUntold(algorithms.Use{}, 0)
	copied := p.Clone()
	p.now += 1000
	seen := p.spend(99).Now
	p.Twin = *copied
	p.now += 1000
	p.spend(1) // another node, which has heard no later time, asks first
	p.now += 1000
	guard := p.guard()
	guard.Node, guard.Seen = "n1", seen
	d := p.Decide(p.now, algorithms.Decide{Fence: guard, Commit: true, Costs: []quantity.Units{99},
		Buckets: []algorithms.LimitTarget{{Target: algorithms.Target{Key: "k", Terms: p.terms}}}})
	if d.Status != algorithms.StatusUnknown {
		t.Errorf("a copy that has shown nothing later than %d decides: %+v", seen-1000, d)
	}
	p.now += 1000
	if d := p.spend(1); d.Status != algorithms.StatusUnknown {
		t.Errorf("another node decides on a copy that is known as one: %+v", d)
	}
	open := algorithms.Open{Expected: guard.Generation, Generation: guard.Generation + 1, Epoch: guard.Epoch, Node: "n2"}
	if o := p.Open(p.now, open); o.OK || !o.Older {
		t.Errorf("a copy is opened as if nothing was lost: %+v", o)
	}
	open.Lost = true
	if o := p.Open(p.now, open); !o.OK || o.Older || o.LostAt == 0 {
		t.Errorf("a copy is not opened as after a loss: %+v", o)
	}
}

var windowKinds = []algorithms.Kind{algorithms.FixedWindow, algorithms.SlidingWindowCounter,
	algorithms.SlidingWindowLog}
