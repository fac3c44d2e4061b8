package store

import (
	"context"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/calendar"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// monthly returns the terms of a limit whose windows are the months of UTC.
func monthly(entitlement quantity.Units) algorithms.Terms {
	const month = 31 * 24 * time.Hour
	return algorithms.Terms{Kind: algorithms.FixedWindow, Window: month.Microseconds(),
		Cell: month.Microseconds(), Tick: 1, Entitlement: entitlement, Recovered: true,
		Calendar: calendar.Calendar{Unit: calendar.Month, Zone: time.UTC, Day: 1}}
}

// On both kinds of servers a month is decided, lent, credited, booked, refunded and reset in the
// cell that Go's calendar names, in short answers as in long ones.
func TestAMonth(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		s := node(t, server, first)
		of := monthly(100)
		on := algorithms.LimitTarget{Target: algorithms.Target{Key: BucketKey(Whole, "k"), Terms: of}}
		month := func(at quantity.StoreTime) quantity.Cell {
			date := time.UnixMicro(int64(at)).UTC()
			return quantity.Cell(12*date.Year() + int(date.Month()) - 1)
		}
		c := algorithms.Decide{Fence: under(epoch), Commit: true,
			Buckets: []algorithms.LimitTarget{on}, Costs: []quantity.Units{30}}
		charged := decide(t, s, c)
		now := time.UnixMicro(int64(charged.Now)).UTC()
		next := quantity.StoreTime(time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0,
			time.UTC).UnixMicro())
		if b := charged.Buckets[0]; b.Cell != month(charged.Now) || b.Free != 70 ||
			b.Reset != next.Sub(charged.Now) || b.ExistsUntil != next {
			t.Errorf("plain: %+v", charged)
		}
		lent := func(cell quantity.Cell) algorithms.Given {
			return must(t, s.Lend(t.Context(), []algorithms.Lend{{Fence: under(epoch), Target: on.Target,
				Debit: algorithms.Debit{Peer: "us",
					Cell: cell, Lent: 40, Cap: 95}}})[0])
		}
		if given := lent(charged.Buckets[0].Cell + 1); given.Status != algorithms.StatusFinished &&
			next.Sub(given.Now) > algorithms.Advance {
			t.Errorf("lent of the next month, which is far: %+v", given)
		}
		if given := lent(charged.Buckets[0].Cell); given.Row.Lent != 40 || given.Share != 60 {
			t.Errorf("lent of the month: %+v", given)
		}
		c.Costs = []quantity.Units{71}
		denied := decide(t, s, c)
		if a := denied.Answers[0]; a.Admitted || a.Verdicts[0].Retry < next.Sub(denied.Now) {
			t.Errorf("denied: %+v", denied)
		}
		must(t, s.Book(t.Context(), []algorithms.Book{{Fence: under(epoch), Target: on.Target,
			Node: "n2", Window: charged.Buckets[0].Cell, Units: 5}})[0])
		refund(t, s, algorithms.Settle{Fence: under(epoch), Receipt: SettleKey(Whole, "r"), Once: OnceKey(Whole, "o"),
			At: charged.Now, Cost: 10, Charges: []algorithms.Charge{{Target: on.Target,
				Cell: charged.Buckets[0].Cell}}})
		if got := inspect(t, s, "k", of); got.Used != 25 || len(got.Rows) != 1 {
			t.Errorf("in the end: %+v", got)
		}
	})
}

// A store whose time is held four months ahead of the node's clock is asked once more, with the
// months around that time.
func TestAStoreInAnotherPeriod(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		s := node(t, kind.start(t), first)
		ahead := time.Now().AddDate(0, 4, 0).UnixMicro()
		suite.Must(t, clientOf(s).HSet(t.Context(), TokenKey(Whole), "mark", ahead).Err())
		on := algorithms.LimitTarget{Target: algorithms.Target{Key: BucketKey(Whole, "k"),
			Terms: monthly(100)}}
		calls := []algorithms.Decide{charge("plain", 10, 1), {Fence: under(epoch), Commit: true,
			Buckets: []algorithms.LimitTarget{on}, Costs: []quantity.Units{1}}}
		for i, r := range s.Decide(t.Context(), calls) {
			d := must(t, r)
			if r.Err != nil || !d.Answers[0].Admitted || d.Buckets[0].Used != 1 ||
				int64(d.Now) < ahead {
				t.Errorf("call %d: %+v, %v", i, d, r.Err)
			}
		}
	})
}

// A bucket of a month lives until the month after it is over.
func TestAMonthsKeyEnds(t *testing.T) {
	begin := time.Date(2024, 2, 10, 0, 0, 0, 0, time.UTC)
	d, err := servers.StartDrivenBy(begin, "r1")
	suite.Must(t, err)
	t.Cleanup(func() { _ = d.Close() })
	now := begin
	s := connect(t, Options{URL: d.URL(), Now: func() time.Time { return now }})
	mustOpen(t, s, first)
	key := BucketKey(Whole, "k")
	c := algorithms.Decide{Fence: under(epoch), Commit: true, Costs: []quantity.Units{1},
		Buckets: []algorithms.LimitTarget{{Target: algorithms.Target{Key: key, Terms: monthly(9)}}}}
	if r := s.Decide(context.Background(), []algorithms.Decide{c}); r[0].Err != nil {
		t.Fatal(r[0].Err)
	}
	for _, step := range []struct {
		at    time.Time
		holds bool
	}{{time.Date(2024, 3, 31, 23, 59, 59, 0, time.UTC), true},
		{time.Date(2024, 4, 1, 0, 0, 2, 0, time.UTC), false}} {
		now = step.at
		d.Set(now)
		if d.Expire(); d.Holds(key) != step.holds {
			t.Errorf("at %s the bucket is there: %v", step.at, !step.holds)
		}
	}
}
