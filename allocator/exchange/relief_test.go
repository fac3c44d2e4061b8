//go:build !race

package exchange

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// denied has the node hear of a denial of a bucket of which all is used, and returns the relief.
func (d *doubting) denied(b *Bucket) Relief {
	d.Helper()
	out := d.m.Step(d.now, Report{{Bucket: b, Now: d.store(), Requests: allocator.Requests{Denied: 1},
		State: algorithms.State{Cell: b.Cells().At(d.store()), Entitlement: 100, Share: 100, Used: 100}}})
	if len(out.Reliefs) != 1 || out.Reliefs[0].Bucket != b.ID {
		d.Fatalf("%+v", out.Reliefs)
	}
	return out.Reliefs[0]
}

// says has the node hear a hint of a region that has so many units of the cell and used some.
func (d *doubting) says(region string, b *Bucket, share, used quantity.Units) {
	d.m.Step(d.now, Heard{Hint: Hint{Region: region, Node: "n1", Bucket: b.ID,
		Cell: b.Cells().At(d.store()), Share: share, Used: used, Total: share}})
}

// TestRelief: units may come of the regions that have not used what they may lend, and nothing is
// said of others.
func TestRelief(t *testing.T) {
	const soon = 2*assumedRoundTrip + Interval
	for _, tc := range []struct {
		name   string
		change func(*Bucket)
		away   bool                                            // ap does not answer
		used   map[string]struct{ share, used quantity.Units } // by the regions that said something
		want   Relief
	}{
		{name: "both are idle", want: Relief{Units: 200, After: soon}},
		{name: "they lend half", change: func(b *Bucket) { b.Lending = allocator.PPM / 2 },
			want: Relief{Units: 100, After: soon}},
		{name: "they lend nothing", change: func(b *Bucket) { b.Lending = 0 }},
		{name: "this region borrows a tenth", change: func(b *Bucket) { b.Borrowing = allocator.PPM / 10 },
			want: Relief{Units: 20, After: soon}},
		{name: "this region borrows nothing", change: func(b *Bucket) { b.Borrowing = 0 }},
		{name: "one has used all", used: map[string]struct{ share, used quantity.Units }{"eu": {100, 100}},
			want: Relief{Units: 100, After: soon}},
		{name: "both have used all", used: map[string]struct{ share, used quantity.Units }{"eu": {100, 100},
			"ap": {100, 101}}},
		{name: "one keeps some", used: map[string]struct{ share, used quantity.Units }{"eu": {100, 93},
			"ap": {100, 100}}, want: Relief{Units: 7, After: soon}},
		{name: "one has used all, and the other does not answer", away: true,
			used: map[string]struct{ share, used quantity.Units }{"eu": {100, 100}},
			want: Relief{Units: 100, After: DegradedAfter, Unheard: true}},
		{name: "one is idle, and the other does not answer", away: true,
			want: Relief{Units: 200, After: soon, Unheard: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDoubting(t)
			d.back = !tc.away
			for range 30 {
				d.tick()
			}
			b := d.bucket("b")
			if tc.change != nil {
				tc.change(b)
			}
			// What is said at first, of a bucket that the machine does not know.
			first := FirstRelief(b, "us", 100, d.m.Ages(d.now))
			d.denied(b)
			for region, s := range tc.used {
				d.says(region, b, s.share, s.used)
			}
			got := d.denied(b)
			tc.want.Bucket, tc.want.Cell = "b", b.Cells().At(d.store())
			// The answers of the test take no time, so the round trip is not measured.
			if got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
			if len(tc.used) == 0 && (first.After != got.After || first.Unheard != got.Unheard || (first.Units > 0) != (got.Units > 0)) {
				t.Errorf("at first %+v, then %+v", first, got)
			}
			for held, left := range map[quantity.Units]quantity.Units{99: first.Units, 101: first.Units - 1, 400: 0} {
				if r := FirstRelief(b, "us", held, d.m.Ages(d.now)); r.Units != max(left, 0) || r.Units == 0 && r.After != 0 {
					t.Errorf("at first, with a share of %d: %+v, want %d units", held, r, left)
				}
			}
		})
	}
}

// TestReliefGrows: the longer requests are denied while no units come, the later they may come
// again, where a region does not answer within a minute. It begins anew when units come, when the
// callers were admitted meanwhile, and in the next cell.
func TestReliefGrows(t *testing.T) {
	const soon = 2*assumedRoundTrip + Interval
	d := newDoubting(t)
	d.back = true
	b := d.bucket("b")
	deny := func(seconds int64) (last Relief) {
		for begun := d.now; d.now.Sub(begun) < seconds*allocator.Second; {
			d.tick()
			d.says("eu", b, 100, 90) // it keeps them
			d.says("ap", b, 100, 100)
			last = d.denied(b)
		}
		return last
	}
	if got := deny(20); got.After < 9*allocator.Second || got.After > 10*allocator.Second {
		t.Errorf("after 20 s: %+v", got)
	}
	cell := b.Cells().At(d.store())
	d.m.Step(d.now, Credited{Credit: Credit{Bucket: b, Gain: 1,
		Announcement: algorithms.Announcement{Peer: "eu", Cell: cell, Lent: 1}},
		Result: algorithms.Credited{Head: algorithms.Head{Now: d.store()}, Row: algorithms.Row{Borrowed: 1},
			State: algorithms.State{Cell: cell, Entitlement: 100, Share: 101, Used: 101}}})
	if got := d.denied(b); got.After > soon+2*Interval {
		t.Errorf("a unit came: %+v", got)
	}
	if got := deny(10); got.After < 4*allocator.Second {
		t.Errorf("after 10 s more: %+v", got)
	}
	for range 60 { // twice as long as was told, and more
		d.tick()
		d.says("eu", b, 100, 90)
	}
	if got := d.denied(b); got.After > soon+2*Interval {
		t.Errorf("the callers were admitted: %+v", got)
	}
	d.back = false
	if got := deny(200); got.After < 90*allocator.Second {
		t.Errorf("a region that has used all does not answer: %+v", got)
	}
	for begun := d.now; d.now.Sub(begun) < 200*allocator.Second; d.denied(b) {
		d.tick() // and what it said is too old now
	}
	if got := d.denied(b); got.After != maxUnheard || !got.Unheard {
		t.Errorf("a region that may hold some does not answer: %+v", got)
	}
}
