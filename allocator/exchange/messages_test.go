//go:build !race

package exchange

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// met returns two regions that have heard each other.
func met(t *testing.T) (c *cluster, eu *testRegion) {
	c = newCluster(t, 1, allocator.Second, 400, 400, 200)
	c.run(c.now + allocator.Second)
	return c, c.regions["eu"]
}

func (r *testRegion) cell() quantity.Cell { return quantity.Cell(int64(r.time()) / r.bucket.Cell) }

func (r *testRegion) asks(a Ask, change func(*Message)) Effects {
	m := Message{From: "us", Node: "n1", Generation: 1, Asks: []Ask{a}}
	if change != nil {
		change(&m)
	}
	bucket := r.bucket
	if a.Bucket != "b" {
		bucket = nil
	}
	return r.machine.Step(r.now, Asked{ID: 1, Message: m, Buckets: []*Bucket{bucket}})
}

func TestAsksThatAreRefused(t *testing.T) {
	c, eu := met(t)
	good := Ask{Bucket: "b", Cell: eu.cell(), Lent: 10}
	for name, x := range map[string]struct {
		ask    Ask
		change func(*Message)
		want   Refusal
	}{
		"other terms":      {good, func(m *Message) { m.Asks[0].Agreed++ }, RefusedTerms},
		"a region unknown": {good, func(m *Message) { m.From = "mars" }, RefusedUnknown},
		"ourselves":        {good, func(m *Message) { m.From = "eu" }, RefusedUnknown},
		"a bucket unknown": {Ask{Bucket: "x", Cell: eu.cell(), Lent: 10}, nil,
			RefusedUnknown},
		"a negative amount": {Ask{Bucket: "b", Cell: eu.cell(), Lent: -1}, nil,
			RefusedImplausible},
		"a negative return": {Ask{Bucket: "b", Cell: eu.cell(), Returned: -1}, nil,
			RefusedImplausible},
		"more than can be counted": {Ask{Bucket: "b", Cell: eu.cell(),
			Lent: algorithms.MaxUnits + 1}, nil, RefusedImplausible},
	} {
		out := eu.asks(x.ask, x.change)
		if len(out.Lend) != 0 || len(out.Replies) != 1 ||
			out.Replies[0].Reply.Grants[0].Refusal != x.want {
			t.Errorf("%s: %+v, want refusal %s", name, out, x.want)
		}
	}
	c.run(c.now + 100_000)
	for _, p := range eu.machine.peers {
		p.answered -= DegradedAfter
	}
	if out := eu.asks(good, nil); len(out.Lend) != 0 ||
		out.Replies[0].Reply.Grants[0].Refusal != RefusedUnheard {
		t.Errorf("a region that does not hear us: %+v", out)
	}
}

// TestWhatIsGoneIsNotLentAhead: of a limit that the newest document no longer has, the cells are
// lent that may be in use when that is acknowledged, and no later ones.
func TestWhatIsGoneIsNotLentAhead(t *testing.T) {
	_, eu := met(t)
	next := eu.cell() + 1
	if out := eu.asks(Ask{Bucket: "b", Cell: next, Lent: 10}, nil); len(out.Lend) != 1 {
		t.Fatalf("not lent while it is there: %+v", out)
	}
	gone := *eu.bucket
	gone.LendsBefore = gone.Cells().Opens(next)
	eu.bucket = &gone
	if out := eu.asks(Ask{Bucket: "b", Cell: next, Lent: 10}, nil); len(out.Lend) != 0 ||
		out.Replies[0].Reply.Grants[0].Refusal != RefusedTerms || out.Replies[0].Reply.Grants[0].Retry != allocator.MaxRetry {
		t.Errorf("the next cell: %+v", out)
	}
	if out := eu.asks(Ask{Bucket: "b", Cell: next - 1, Lent: 10}, nil); len(out.Lend) != 1 {
		t.Errorf("the present cell: %+v", out)
	}
}

// TestNoReplyBeforeTheRowIsDurable: the grant leaves only with Recorded, and says nothing if the
// journal failed.
func TestNoReplyBeforeTheRowIsDurable(t *testing.T) {
	for _, ok := range []bool{true, false} {
		_, eu := met(t)
		out := eu.asks(Ask{Bucket: "b", Cell: eu.cell(), Lent: 10}, nil)
		if len(out.Lend) != 1 || len(out.Replies) != 0 {
			t.Fatalf("ask: %+v", out)
		}
		given := algorithms.Given{Head: algorithms.Head{Now: quantity.StoreTime(eu.time())},
			State: algorithms.State{Cell: eu.cell(), Share: 390}, Row: algorithms.Row{Lent: 10}}
		out = eu.machine.Step(eu.now, Lent{ID: 1, Given: []algorithms.Given{given}})
		if len(out.Record) != 1 || len(out.Replies) != 0 {
			t.Fatalf("lent: %+v", out)
		}
		out = eu.machine.Step(eu.now, Recorded{ID: 1, OK: ok})
		g := out.Replies[0].Reply.Grants[0]
		if ok && g.Lent != 10 || !ok && (g.Lent != 0 || g.Refusal != RefusedStore) {
			t.Errorf("recorded %t: %+v", ok, g)
		}
	}
}

// TestNothingIsLentAfterTheJournalFailed: otherwise the store would debit for replies that can
// never leave.
func TestNothingIsLentAfterTheJournalFailed(t *testing.T) {
	_, eu := met(t)
	eu.asks(Ask{Bucket: "b", Cell: eu.cell(), Lent: 10}, nil)
	given := algorithms.Given{Head: algorithms.Head{Now: quantity.StoreTime(eu.time())},
		State: algorithms.State{Cell: eu.cell(), Share: 390}, Row: algorithms.Row{Lent: 10}}
	eu.machine.Step(eu.now, Lent{ID: 1, Given: []algorithms.Given{given}})
	eu.machine.Step(eu.now, Recorded{ID: 1})
	out := eu.asks(Ask{Bucket: "b", Cell: eu.cell(), Lent: 20}, nil)
	if len(out.Lend) != 0 || out.Replies[0].Reply.Grants[0].Refusal != RefusedStore ||
		!eu.machine.Stats().JournalFailed {
		t.Errorf("after the journal failed: %+v", out)
	}
}

// TestWhatTheStoreDoesNotRememberIsNotAnnounced: the row is durable, but the store could not be
// told so. The peer hears nothing of it, and is answered when it asks again.
func TestWhatTheStoreDoesNotRememberIsNotAnnounced(t *testing.T) {
	_, eu := met(t)
	given := algorithms.Given{Head: algorithms.Head{Now: quantity.StoreTime(eu.time())},
		State: algorithms.State{Cell: eu.cell(), Share: 390}, Row: algorithms.Row{Lent: 10}}
	for _, unnoted := range []bool{true, false} {
		eu.asks(Ask{Bucket: "b", Cell: eu.cell(), Lent: 10}, nil)
		eu.machine.Step(eu.now, Lent{ID: 1, Given: []algorithms.Given{given}})
		out := eu.machine.Step(eu.now, Recorded{ID: 1, OK: true, Unnoted: unnoted})
		g := out.Replies[0].Reply.Grants[0]
		if unnoted != (g.Refusal == RefusedStore) || unnoted != (g.Lent == 0) || eu.machine.Stats().JournalFailed {
			t.Errorf("unnoted %t: %+v", unnoted, g)
		}
	}
}

// TestTheStoreRefusesWhatNoLenderMayGive: more than the lending limit, or a return of what was
// never lent.
func TestTheStoreRefusesWhatNoLenderMayGive(t *testing.T) {
	_, eu := met(t)
	for name, x := range map[string]struct {
		lent, returned quantity.Units
		want           algorithms.Status
	}{
		"the lending limit":           {380, 0, algorithms.StatusOK},
		"more than the lending limit": {381, 0, algorithms.StatusImplausible},
		"a return of nothing lent":    {10, 1, algorithms.StatusImplausible},
	} {
		got := eu.store.Credit(quantity.StoreTime(eu.time()), algorithms.Credit{Fence: eu.guard(),
			Target: algorithms.Target{Key: name, Terms: eu.terms()},
			Announcement: algorithms.Announcement{Peer: "us",
				PeerGeneration: 1, Cell: eu.cell(), Lent: x.lent, Returned: x.returned, Most: 380}})
		if got.Status != x.want {
			t.Errorf("%s: %s, want %s", name, got.Status, x.want)
		}
	}
}

// TestRepliesThatAreNotCredited: written for another generation of our store, of another region,
// for another cell, or of amounts that cannot be.
func TestRepliesThatAreNotCredited(t *testing.T) {
	for name, change := range map[string]func(*Reply){
		"another generation of ours": func(r *Reply) { r.ForGeneration = 2 },
		"another region":             func(r *Reply) { r.From = "ap" },
		"another cell":               func(r *Reply) { r.Grants[0].Cell++ },
		"more than can be counted": func(r *Reply) {
			r.Grants[0].Lent = algorithms.MaxUnits + 1
		},
		"a negative amount": func(r *Reply) { r.Grants[0].Lent = -1 },
		"a grant too many": func(r *Reply) {
			r.Grants = append(r.Grants, r.Grants[0])
		},
		"nothing (what is sent is good)": func(*Reply) {},
	} {
		c := newCluster(t, 1, allocator.Second, 400, 400, 200)
		us := c.regions["us"]
		us.rate = 900
		us.load()
		var call Call
		// From the first ask to eu on, the test delivers by hand.
		for call.Peer != "eu" || len(call.Message.Asks) == 0 {
			c.run(c.queue[0].at)
			if us.machine.stats.Asks > 0 {
				for id, made := range us.machine.calls {
					if made.peer == "eu" && len(made.asks) > 0 {
						call = Call{ID: id, Peer: "eu", Message: Message{Asks: []Ask{made.asks[0]}}}
					}
				}
			}
		}
		ask := call.Message.Asks[0]
		r := Reply{From: "eu", Generation: 1, ForGeneration: 1,
			Grants: []Grant{{Cell: ask.Cell, Lent: ask.Lent}}}
		change(&r)
		out := us.machine.Step(us.now, Answered{ID: call.ID, Reply: r})
		if credited := len(out.Credits) > 0; credited !=
			(name == "nothing (what is sent is good)") {
			t.Errorf("%s: credited %t", name, credited)
		}
		if out := us.machine.Step(us.now, Answered{ID: call.ID, Reply: r}); len(out.Credits) > 0 {
			t.Errorf("%s: a second reply to one call was credited", name)
		}
	}
}

// TestSameEventsSameEffects: the machine is deterministic.
func TestSameEventsSameEffects(t *testing.T) {
	run := func() Stats {
		c := newCluster(t, 7, allocator.Second, 400, 400, 200)
		c.hostility(true)
		c.run(c.now + 10*allocator.Second)
		return c.stats()
	}
	if a, b := run(), run(); a != b || a.Asks == 0 {
		t.Errorf("one seed, two runs: %+v and %+v", a, b)
	}
}
