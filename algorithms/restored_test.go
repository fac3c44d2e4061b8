//go:build !race

package algorithms_test

import (
	"context"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// stores are a script's two stores, which a test asks the same: the Lua on an embedded Redis, and
// its twin.
type stores struct {
	t    *testing.T
	lua  *lua
	twin algorithms.Twin
	now  quantity.StoreTime
}

func newStores(t *testing.T, now quantity.StoreTime) *stores {
	s := &stores{t: t, lua: newLua(t, fixtures.Kinds["embedded"](t))}
	s.at(now)
	return s
}

func (s *stores) at(now quantity.StoreTime) {
	s.now = now
	s.lua.setTime(s.t, now)
}

// flush loses everything but the clock.
func (s *stores) flush() {
	suite.Must(s.t, s.lua.client.FlushAll(context.Background()).Err())
	s.twin.Flush()
	s.at(s.now)
}

func (s *stores) guard() algorithms.Fence {
	return algorithms.Fence{Generation: s.twin.Generation, Epoch: "1-e", Clock: s.now}
}

func (s *stores) open(c algorithms.Open) algorithms.Opened {
	s.t.Helper()
	c.Region, c.Epoch, c.Secret, c.Replid = "us", "1-e", "s", "r"
	got := must[algorithms.Opened](s.t)(c.Parse(s.lua.eval(s.t, algorithms.OpenScript, c.Args())))
	same(s.t, "open", c, got, s.twin.Open(s.now, c))
	return got
}

func (s *stores) restore(c algorithms.Restore) algorithms.Restored {
	s.t.Helper()
	c.Fence, c.Key = s.guard(), "k"
	got := must[algorithms.Restored](s.t)(c.Parse(s.lua.eval(s.t, algorithms.RestoreScript,
		c.Args(), "k")))
	same(s.t, "restore", c, got, s.twin.Restore(s.now, c))
	return got
}

func (s *stores) decide(terms algorithms.Terms, cost quantity.Units) algorithms.Decided {
	s.t.Helper()
	return s.decideOn(algorithms.LimitTarget{Target: algorithms.Target{Key: "k", Terms: terms}}, cost)
}

func (s *stores) decideOn(b algorithms.LimitTarget, cost quantity.Units) algorithms.Decided {
	s.t.Helper()
	var c algorithms.Items
	c.Add(algorithms.Decide{Fence: s.guard(), Commit: true, Costs: []quantity.Units{cost},
		Buckets: []algorithms.LimitTarget{b}})
	got := must[algorithms.ItemsDecided](s.t)(c.Parse(s.lua.eval(s.t, algorithms.DecideScript,
		c.Args(), c.Keys()...)))
	same(s.t, "decide", c, got, c.With(func(d algorithms.Decide) algorithms.Decided {
		return s.twin.Decide(s.now, d)
	}))
	return got.Each[0]
}

// restoring is a store that lost its data at the end of cell 0, and its bucket of 100 units a cell
// of 1 s.
func restoring(t *testing.T) (s *stores, terms algorithms.Terms, lostAt, start quantity.StoreTime) {
	start = 1_800_000_000_000_000
	terms = algorithms.Terms{Kind: algorithms.SlidingWindowCounter, Window: 1_000_000,
		Cell: 1_000_000, Tick: 1, Entitlement: 100, Recovered: true}
	s = newStores(t, start+900_000)
	s.open(algorithms.Open{Generation: 1})
	s.flush()
	o := s.open(algorithms.Open{Generation: 2, Lost: true, Seen: s.now})
	return s, terms, o.LostAt, start
}

// TestACounterRestoredInTheNextCell: a counter used 80 of 100 in a cell that is over when it is
// restored. A quarter into the next one they weigh 60: 40 are free, and not 100. Half into it 60
// are.
func TestACounterRestoredInTheNextCell(t *testing.T) {
	s, terms, lostAt, start := restoring(t)
	s.at(start + 1_250_000)
	cell := quantity.Cell(int64(start) / terms.Cell)
	got := s.restore(algorithms.Restore{Target: algorithms.Target{Terms: terms}, LostAt: lostAt,
		Known: algorithms.Known{Use: algorithms.Use{Cell: cell, Units: 80, At: start + 800_000}}})
	if got.Status != algorithms.StatusOK || got.Used != 60 || got.Free != 40 {
		t.Errorf("a quarter into the next cell %d count and %d are free (%v), want 60 and 40",
			got.Used, got.Free, got.Status)
	}
	s.at(start + 1_500_000)
	if d := s.decide(terms, 61); d.Answers[0].Admitted {
		t.Errorf("61 admitted beside 40: %+v", d)
	}
	if d := s.decide(terms, 60); !d.Answers[0].Admitted {
		t.Errorf("60 denied beside 40: %+v", d)
	}
}

// TestACounterRestoredInItsCell: as above, but restored while the cell lasts, and in two calls. A
// call that reports less use does not lower what is counted.
func TestACounterRestoredInItsCell(t *testing.T) {
	s, terms, lostAt, start := restoring(t)
	s.at(start + 950_000)
	cell := quantity.Cell(int64(start) / terms.Cell)
	got := s.restore(algorithms.Restore{Target: algorithms.Target{Terms: terms}, LostAt: lostAt,
		Known: algorithms.Known{Use: algorithms.Use{Cell: cell, Units: 80, At: start + 800_000},
			UnknownPeers: []string{"eu"}}})
	if got.Status != algorithms.StatusOK || got.Used != 80 || got.Free != 20 {
		t.Errorf("in its cell %d count and %d are free (%v), want 80 and 20", got.Used, got.Free,
			got.Status)
	}
	got = s.restore(algorithms.Restore{Target: algorithms.Target{Terms: terms}, LostAt: lostAt,
		Known: algorithms.Known{Use: algorithms.Use{Cell: cell, Units: 70, At: start + 700_000},
			KnownPeers: []string{"eu"}}})
	if got.Used != 80 {
		t.Errorf("a node that had seen less tells, and %d count, want 80", got.Used)
	}
}

// TestTheMarkOutlivesAnOpening: a store's clock was ahead and is set right, then the store is
// opened once more. The new generation begins at the latest time shown, also if its opener did not
// know that time. Otherwise the cells in between would come again, each with its full share.
func TestTheMarkOutlivesAnOpening(t *testing.T) {
	const start = 1_800_000_000_000_000
	terms := algorithms.Terms{Kind: algorithms.FixedWindow, Window: 1_000_000, Cell: 1_000_000,
		Tick: 1, Entitlement: 100}
	for name, lost := range map[string]bool{"nothing is lost": false,
		"something is, and its opener never saw it": true} {
		t.Run(name, func(t *testing.T) {
			s := newStores(t, start+5_500_000)
			s.open(algorithms.Open{Generation: 1})
			if d := s.decide(terms, 100); !d.Answers[0].Admitted {
				t.Fatalf("%+v", d)
			}
			s.at(start + 1_500_000) // the clock is right again
			o := s.open(algorithms.Open{Expected: 1, Generation: 2, Lost: lost, Seen: s.now})
			if o.Begun != start+5_500_000 || lost && o.LostAt != o.Begun {
				t.Errorf("begun at %d, lost at %d: the store had shown %d", o.Begun, o.LostAt,
					start+5_500_000)
			}
			for second := int64(1); second < 6; second++ {
				s.at(quantity.StoreTime(start + second*1_000_000 + 500_000))
				if d := s.decide(terms, 1); d.Now < start+5_500_000 || d.Answers[0].Admitted {
					t.Errorf("in second %d, decided at %d: %+v", second, d.Now-start, d)
				}
			}
		})
	}
}

// TestUseToldLate: a node cannot be asked while its bucket is restored, and reports its use later.
// From then on its use counts, in the script as in the twin.
func TestUseToldLate(t *testing.T) {
	for _, kind := range windowKinds {
		t.Run(string(kind), func(t *testing.T) {
			s, terms, lostAt, start := restoring(t)
			terms.Kind, terms.Cell = kind, algorithms.CellLength(kind, terms.Window)
			s.at(start + 950_000)
			use := algorithms.Use{Cell: quantity.Cell(int64(lostAt) / terms.Cell), Units: 10,
				At: start + 800_000}
			c := algorithms.Restore{Target: algorithms.Target{Terms: terms}, LostAt: lostAt,
				Known: algorithms.Known{Most: 300, Use: use}}
			if got := s.restore(c); got.Status != algorithms.StatusOK || got.Free != 0 {
				t.Errorf("not all told, and %d are free (%v)", got.Free, got.Status)
			}
			c.Most, c.Use.Units = 0, 60
			if got := s.restore(c); got.Used != 60 || got.Free != 40 {
				t.Errorf("all told: %d count and %d are free, want 60 and 40", got.Used, got.Free)
			}
			if d := s.decide(terms, 41); d.Answers[0].Admitted {
				t.Errorf("41 admitted beside 60: %+v", d)
			}
		})
	}
}

// TestLogsThatOwe: Lua and twin agree on logs with few rights and with many that are charged always, one
// unit at a time, until they have as many entries as one that owes may have, and on until these have
// left the window.
func TestLogsThatOwe(t *testing.T) {
	for _, rights := range []quantity.Units{0, 10, 100} {
		terms := algorithms.Terms{Kind: algorithms.SlidingWindowLog, Window: 1000, Cell: 334, Tick: 1, Entitlement: rights}
		s := newStores(t, 1_800_000_000_000_000)
		s.open(algorithms.Open{Generation: 1})
		b, most := algorithms.LimitTarget{Target: algorithms.Target{Key: "k", Terms: terms}, Always: true}, quantity.Units(0)
		for n := range 600 {
			s.at(s.now + 1 + quantity.StoreTime(n/200*3))
			most = max(most, s.decideOn(b, 1).Buckets[0].Used)
			if n%50 == 0 {
				s.decide(terms, 1)
			}
		}
		if most < 200 {
			t.Errorf("%d rights: %d used at most: the log did not owe for long", rights, most)
		}
	}
}

// TestAFullWindowIsChargedAllTheSame: a plain bucket that has no room is charged by the scripts as by the
// twin, of each kind.
func TestAFullWindowIsChargedAllTheSame(t *testing.T) {
	for _, kind := range []algorithms.Kind{algorithms.FixedWindow, algorithms.SlidingWindowCounter,
		algorithms.SlidingWindowLog, algorithms.TokenBucket} {
		terms := algorithms.Terms{Kind: kind, Window: 1_000_000, Cell: 1_000_000, Tick: 1, Entitlement: 10}
		if kind.Bucket() {
			terms.Burst = 10
		}
		s := newStores(t, 1_800_000_000_000_000)
		s.open(algorithms.Open{Generation: 1})
		b := algorithms.LimitTarget{Target: algorithms.Target{Key: "k", Terms: terms}, Always: true, MostOwed: 100}
		for i, owed := range []quantity.Units{0, 4, 7} {
			if got := s.decideOn(b, 7).Answers[0].Verdicts[0].Owed; got != owed {
				t.Errorf("%s, charge %d: %d owed, want %d", kind, i, got, owed)
			}
		}
	}
}
