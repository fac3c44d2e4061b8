//go:build !race

package algorithms_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/calendar"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy/zones"
	"github.com/quotad/quotad/quantity"
)

// calendarStore is one region's store and a bucket in it whose cells are periods of a calendar. Its
// nodes' clocks are the store's.
type calendarStore struct {
	algorithms.Twin
	name  string
	ahead int64 // of its clock, µs
	terms algorithms.Terms
	// what was admitted, by cell
	admitted map[quantity.Cell]quantity.Units
}

func newCalendarStore(name string, ahead int64, c calendar.Calendar,
	entitlement quantity.Units) *calendarStore {
	const day = 24 * 3600 * 1_000_000
	s := &calendarStore{name: name, ahead: ahead, admitted: map[quantity.Cell]quantity.Units{},
		terms: algorithms.Terms{Kind: algorithms.FixedWindow, Window: day, Cell: day, Tick: 1,
			Entitlement: entitlement, Calendar: c, Recovered: true}}
	s.Open(0, algorithms.Open{Generation: 1, Region: name, Epoch: "1-e"})
	return s
}

func (s *calendarStore) time(now quantity.StoreTime) quantity.StoreTime { return now.Add(s.ahead) }

func (s *calendarStore) fence(now quantity.StoreTime) algorithms.Fence {
	return algorithms.Fence{Generation: 1, Epoch: "1-e", Clock: s.time(now)}
}

func (s *calendarStore) target() algorithms.Target {
	return algorithms.Target{Key: "k", Terms: s.terms}
}

// ask decides a cost, and notes what was admitted.
func (s *calendarStore) ask(now quantity.StoreTime, cost quantity.Units) algorithms.Decided {
	d := s.Decide(s.time(now), algorithms.Decide{Fence: s.fence(now), Commit: true,
		Costs:   []quantity.Units{cost},
		Buckets: []algorithms.LimitTarget{{Target: s.target()}}})
	if d.Status == algorithms.StatusOK && d.Answers[0].Admitted {
		s.admitted[d.Buckets[0].Cell] += cost
	}
	return d
}

// lend lends units of a cell to another region, which hears of it, unless the message is lost.
func (s *calendarStore) lend(to *calendarStore, now quantity.StoreTime, cell quantity.Cell,
	units quantity.Units, lost bool) (algorithms.Given, algorithms.Credited) {
	g := s.Lend(s.time(now), algorithms.Lend{Fence: s.fence(now), Target: s.target(),
		Debit: algorithms.Debit{Peer: to.name,
			Cell: cell, Lent: units, Cap: s.terms.Entitlement}})
	if g.Status != algorithms.StatusOK || lost {
		return g, algorithms.Credited{}
	}
	return g, to.Credit(to.time(now), algorithms.Credit{Fence: to.fence(now), Target: to.target(),
		Announcement: algorithms.Announcement{Peer: s.name, PeerGeneration: 1, Cell: cell, Lent: g.Row.Lent,
			Most: s.terms.Entitlement, At: s.time(now)}})
}

func inZone(t testing.TB, c calendar.Calendar, zone string) calendar.Calendar {
	z, err := zones.Load(zone)
	suite.Must(t, err)
	c.Zone = z
	return c
}

// ends are instants at which a period ends.
func ends(t testing.TB) map[string]calendarEnd {
	end := func(unit calendar.Unit, day int, zone, at string) calendarEnd {
		instant, err := time.Parse(time.RFC3339, at)
		suite.Must(t, err)
		return calendarEnd{inZone(t, calendar.Calendar{Unit: unit, Day: day}, zone),
			quantity.StoreTime(instant.UnixMicro())}
	}
	return map[string]calendarEnd{
		"a month":                         end(calendar.Month, 1, "Europe/Berlin", "2026-02-28T23:00:00Z"),
		"a month that begins on its 31st": end(calendar.Month, 31, "UTC", "2026-02-28T00:00:00Z"),
		"a day of 23 hours":               end(calendar.Day, 0, "Europe/Berlin", "2026-03-29T22:00:00Z"),
		"a day of 25 hours":               end(calendar.Day, 0, "Europe/Berlin", "2026-10-25T23:00:00Z"),
		"a day without midnight":          end(calendar.Day, 0, "America/Sao_Paulo", "2018-11-04T03:00:00Z"),
		"a day with two midnights":        end(calendar.Day, 0, "Asia/Amman", "2021-10-28T21:00:00Z"),
		"a day before one that is skipped": end(calendar.Day, 0, "Pacific/Apia",
			"2011-12-30T10:00:00Z"),
	}
}

type calendarEnd struct {
	calendar calendar.Calendar
	at       quantity.StoreTime
}

// Two regions whose clocks are 5 s apart decide and lend around the end of a period. Each labels by
// its own clock what Go's calendar says, and whatever the order, all that carries one label is
// within the limit. Rights of the next period are lent before it begins.
func TestTwoRegionsAroundTheEndOfAPeriod(t *testing.T) {
	const f = 10
	for name, end := range ends(t) {
		t.Run(name, func(t *testing.T) {
			promised, borrowedBehind := false, false
			suite.Check(t, func(t *rapid.T) {
				ahead := newCalendarStore("ahead", 5_000_000, end.calendar, f)
				behind := newCalendarStore("behind", 0, end.calendar, f)
				now := end.at.Add(-10_000_000)
				for range rapid.IntRange(5, 40).Draw(t, "acts") {
					now = now.Add(rapid.SampledFrom([]int64{0, 1, 200_000, 1_000_000,
						2_000_000}).Draw(t, "later"))
					a, b := ahead, behind
					if rapid.Bool().Draw(t, "the other") {
						a, b = b, a
					}
					current := end.calendar.At(a.time(now))
					if rapid.Bool().Draw(t, "decide") {
						d := a.ask(now, quantity.Units(rapid.IntRange(1, 6).Draw(t, "cost")))
						if got := d.Buckets[0].Cell; got != labelOf(end, a.time(now)) {
							t.Fatalf("%s labels %d at %d, Go's calendar says %d", a.name, got,
								a.time(now), labelOf(end, a.time(now)))
						}
						continue
					}
					cell := current + quantity.Cell(rapid.IntRange(0, 1).Draw(t, "next"))
					_, heard := a.lend(b, now, cell,
						quantity.Units(rapid.IntRange(1, f).Draw(t, "lent")), rapid.Bool().Draw(t, "lost"))
					credited := heard.Status == algorithms.StatusOK && heard.Row.Borrowed > 0
					promised = promised || credited && cell > current
					borrowedBehind = borrowedBehind || credited && a == ahead && cell == current &&
						cell > end.calendar.At(b.time(now))
				}
				for cell := range ahead.admitted {
					if sum := ahead.admitted[cell] + behind.admitted[cell]; sum > 2*f {
						t.Fatalf("%d units admitted in cell %d, of %d", sum, cell, 2*f)
					}
				}
			})
			// The day that is skipped stands between those that the two are in.
			skipped := labelOf(end, end.at) > end.calendar.At(end.at-1)+1
			if !promised || !borrowedBehind && !skipped {
				t.Errorf("lent before a period: %v; by who had begun it to who had not: %v", promised,
					borrowedBehind)
			}
		})
	}
}

// labelOf returns the label that belongs to a time near the end of a period, by whether clocks
// there have come to the end.
func labelOf(end calendarEnd, t quantity.StoreTime) quantity.Cell {
	before := end.calendar.At(end.at - 1)
	if t < end.at {
		return before
	}
	if _, offset := time.UnixMicro(int64(end.at)).In(end.calendar.Zone).Zone(); offset == 14*3600 {
		return before + 2 // Apia, which skipped a day
	}
	return before + 1
}

// Two nodes of one region have other rules of a time zone: one says that the next period begins an
// hour earlier. Whatever they do in turns, no label has more than its rights.
func TestNodesWithOtherRules(t *testing.T) {
	const f, hour = 10, 3600 * 1_000_000
	both := false
	suite.Check(t, func(t *rapid.T) {
		s := &calendarStore{name: "us", admitted: map[quantity.Cell]quantity.Units{},
			terms: algorithms.Terms{Kind: algorithms.FixedWindow, Window: 24 * hour, Cell: 24 * hour,
				Tick: 1, Entitlement: f}}
		now := quantity.StoreTime(24*hour*20_000 - 2*hour)
		s.Open(now, algorithms.Open{Generation: 1, Region: s.name, Epoch: "1-e"})
		lent := map[quantity.Cell]quantity.Units{}
		labels := map[string]map[quantity.Cell]bool{"old": {}, "new": {}}
		for range rapid.IntRange(5, 60).Draw(t, "acts") {
			now = now.Add(rapid.SampledFrom([]int64{0, 1, hour / 5, hour / 2}).Draw(t, "later"))
			node := rapid.SampledFrom([]string{"old", "new"}).Draw(t, "node")
			s.terms.Calendar = days{}
			if node == "new" {
				s.terms.Calendar = days{early: hour}
			}
			switch rapid.IntRange(0, 3).Draw(t, "act") {
			case 0:
				cell := s.terms.CellAt(now) + quantity.Cell(rapid.IntRange(0, 1).Draw(t, "next"))
				g := s.Lend(now, algorithms.Lend{Fence: s.fence(now), Target: s.target(),
					Debit: algorithms.Debit{Peer: "eu",
						Cell: cell, Lent: quantity.Units(rapid.IntRange(1, f).Draw(t, "lent")), Cap: f}})
				if g.Status == algorithms.StatusOK {
					lent[cell] = max(lent[cell], g.Row.Lent)
				}
			case 1: // a row of the peer has rows written
				s.Credit(now, algorithms.Credit{Fence: s.fence(now), Target: s.target(),
					Announcement: algorithms.Announcement{Peer: "ap",
						PeerGeneration: 1, Cell: s.terms.CellAt(now), Lent: 1, Most: f}})
			default:
				d := s.ask(now, quantity.Units(rapid.IntRange(1, 4).Draw(t, "cost")))
				labels[node][d.Buckets[0].Cell] = true
			}
		}
		both = both || len(labels["old"]) > 1 && len(labels["new"]) > 1
		for cell, units := range s.admitted {
			if units+lent[cell] > f+1 {
				t.Fatalf("%d admitted and %d lent in cell %d, of %d and 1 borrowed", units,
					lent[cell], cell, f)
			}
		}
	})
	if !both {
		t.Error("no run had both nodes in both periods")
	}
}

// days is a calendar of days that begin early.
type days struct{ early int64 }

const microsecondsOfDay = 24 * 3600 * 1_000_000

func (d days) At(t quantity.StoreTime) quantity.Cell {
	return algorithms.CellAt(t.Add(d.early), microsecondsOfDay)
}

func (d days) Opens(cell quantity.Cell) quantity.StoreTime {
	return cell.OpensAt(microsecondsOfDay).Add(-d.early)
}

// A denied request and a bucket that was used say when the period ends: after 22 hours of a day of
// 23, and 24 of one of 25.
func TestRetryAndResetCountToTheEndOfThePeriod(t *testing.T) {
	berlin := inZone(t, calendar.Calendar{Unit: calendar.Day}, "Europe/Berlin")
	for date, hours := range map[string]int64{"2026-03-29": 22, "2026-06-01": 23, "2026-10-25": 24} {
		midnight, err := time.ParseInLocation(time.DateOnly, date, berlin.Zone)
		suite.Must(t, err)
		now := quantity.StoreTime(midnight.Add(time.Hour).UnixMicro())
		s := newCalendarStore("us", 0, berlin, 10)
		s.ask(now, 10)
		d := s.ask(now, 1)
		want := hours * 3600 * 1_000_000
		if got := d.Answers[0].Verdicts[0].Retry; d.Answers[0].Admitted || got != want {
			t.Errorf("%s, at 01:00: retry after %d us, want %d", date, got, want)
		}
		if got := d.Buckets[0].Reset; got != want {
			t.Errorf("%s, at 01:00: reset after %d us, want %d", date, got, want)
		}
		if d := s.ask(now.Add(want), 10); !d.Answers[0].Admitted {
			t.Errorf("%s: denied when the day is over", date)
		}
	}
}

// A bucket that was lost in a month is closed until the month after it is over, or it is restored:
// then what was used of the month is used.
func TestALostMonth(t *testing.T) {
	berlin := inZone(t, calendar.Calendar{Unit: calendar.Month, Day: 15}, "Europe/Berlin")
	at := func(month time.Month, day, hour int) quantity.StoreTime {
		return quantity.StoreTime(time.Date(2026, month, day, hour, 0, 0, 0, berlin.Zone).UnixMicro())
	}
	loss := at(time.February, 20, 0)
	for name, recovered := range map[string]bool{"restored": true, "closed": false} {
		s := newCalendarStore("us", 0, berlin, 10)
		s.terms.Recovered = recovered
		s.Flush()
		s.Open(loss, algorithms.Open{Generation: 1, Region: "us", Epoch: "1-e", Lost: true})
		d := s.ask(loss+1, 1)
		if recovered {
			if d.Status != algorithms.StatusLost {
				t.Fatalf("%s: %+v", name, d)
			}
			s.Restore(loss+2, algorithms.Restore{Fence: s.fence(loss + 2), Target: s.target(),
				LostAt: loss,
				Known: algorithms.Known{KnownPeers: []string{"eu"}, Rows: []algorithms.RememberedRow{
					{Peer: "eu", Cell: berlin.At(loss), Lent: 3}},
					Use: algorithms.Use{Cell: berlin.At(loss), Units: 5, At: loss - 1}}})
			if got := s.ask(loss+3, 3); got.Answers[0].Admitted || got.Buckets[0].Used != 5 ||
				got.Buckets[0].Share != 7 {
				t.Errorf("%s: %+v", name, got)
			}
			if got := s.ask(at(time.March, 15, 0)-1, 2); !got.Answers[0].Admitted {
				t.Errorf("%s: %+v", name, got)
			}
			if got := s.ask(at(time.March, 15, 0), 10); !got.Answers[0].Admitted {
				t.Errorf("%s, in the month after: %+v", name, got)
			}
			continue
		}
		wait := at(time.April, 15, 0).Sub(loss + 1)
		if d.Answers[0].Admitted || d.Buckets[0].Shut != at(time.April, 15, 0) ||
			d.Answers[0].Verdicts[0].Retry != wait {
			t.Errorf("%s: %+v, want to wait %d", name, d, wait)
		}
	}
}
