//go:build !race

package sim

import (
	"strings"
	"testing"

	"github.com/quotad/quotad/region/trade/rights"
)

// pair returns a plan of two regions of equal weight and one limit. The first region has so many
// nodes. Both regions ask for all they are entitled to in each of the spans spent, in seconds.
func pair(nodes int, limit string, spent [][2]int64, acts ...Act) *Plan {
	p := &Plan{
		Seed: 1, Regions: []RegionPlan{{Name: "r0", Weight: 1, Nodes: nodes},
			{Name: "r1", Weight: 1, Nodes: 1}},
		OneWay: [][]int64{{0, 15_000}, {15_000, 0}}, Keys: []string{"k0"},
		Document: "regions: {r0: {weight: 1}, r1: {weight: 1}}\nlimits:\n  - {name: l0, domain: api, key: [account], lending_limit: 0, on_store_failure: deny, " + limit + "}\n",
		Acts:     acts,
		Heal:     44_000_000, End: 56_000_000,
	}
	for _, s := range spent {
		for r := range p.Regions {
			p.Acts = append(p.Acts, Act{Do: Steady, At: s[0] * 1_000_000,
				For: (s[1] - s[0]) * 1_000_000, Region: r, Amount: 100_000, Cost: 1})
		}
	}
	for i := range p.Acts {
		p.Acts[i].ID = i
	}
	return p
}

// at returns an act at a time, for a length, both in seconds.
func at(seconds float64, do Deed, length float64, more ...func(*Act)) Act {
	a := Act{Do: do, At: int64(seconds * 1e6), For: int64(length * 1e6), Peer: -1}
	for _, m := range more {
		m(&a)
	}
	return a
}

// into makes the plan begin some seconds into an hour.
func into(seconds int64, p *Plan) *Plan {
	p.Into = seconds * 1_000_000
	return p
}

// lending makes the plan's regions lend to each other.
func lending(p *Plan) *Plan {
	p.Document = strings.Replace(p.Document, "lending_limit: 0, ", "", 1)
	return p
}

// local makes the plan's nodes admit their part without the store.
func local(p *Plan) *Plan {
	p.Document = strings.Replace(p.Document, "on_store_failure: deny", "on_store_failure: local", 1)
	return p
}

// heavy gives the plan's first region nine tenths.
func heavy(p *Plan) *Plan {
	p.Regions[0].Weight = 9
	p.Document = strings.Replace(p.Document, "{r0: {weight: 1}", "{r0: {weight: 9}", 1)
	return p
}

// crowded gives the plan two keys, and nodes room to remember one bucket.
func crowded(p *Plan) *Plan {
	p.Keys, p.Memory = append(p.Keys, "k1"), rights.Memory{Buckets: 1, Uses: 1}
	return p
}

// aside makes an act a load of another key.
func aside(key int) func(*Act) { return func(a *Act) { a.Key, a.Amount, a.Cost = key, 10_000, 1 } }

func both(a *Act) { a.Back = true }
func of(region int) func(*Act) {
	return func(a *Act) { a.Region, a.Amount, a.Cost = region, 100_000, 5 }
}
func each(milli int64) func(*Act) { return func(a *Act) { a.Amount, a.Cost = milli, 1 } }
func busy(a *Act)                 { a.Amount = 66_000 }
func on(node int) func(*Act)      { return func(a *Act) { a.Node = node } }
func by(seconds int64) func(*Act) { return func(a *Act) { a.Amount = seconds * 1_000_000 } }

const (
	hourly  = "algorithm: fixed_window, limit: 1000, window: 3600s"
	counted = "algorithm: sliding_window_counter, limit: 1000, window: 3600s"
	logged  = "algorithm: sliding_window_log, limit: 1000, window: 3600s"
	daily   = "algorithm: fixed_window, limit: 1000, window: 86400s"
	shortly = "algorithm: fixed_window, limit: 60, window: 1s"
	queued  = "algorithm: leaky_bucket, limit: 300, window: 60s"
)

// onceOverspent are plans in which more was admitted or lent than the limit, because a use, a time
// or a row was forgotten.
var onceOverspent = map[string]*Plan{
	// The node that gets all requests of a key is dead when the store loses its data. The other
	// node restored the bucket without that node's use.
	"a mate that decided is dead": pair(2, hourly, [][2]int64{{2, 10}, {15, 30}},
		at(0, Stick, 50, on(1)), at(12, Crash, 25, on(1)), at(13, Flush, 0)),
	"a mate that decided is dead, by a counter": pair(2, counted, [][2]int64{{2, 10}, {15, 30}},
		at(0, Stick, 50, on(1)), at(12, Crash, 25, on(1)), at(13, Flush, 0)),
	"a mate that decided is dead, by a log": pair(2, logged, [][2]int64{{2, 10}, {15, 30}},
		at(0, Stick, 50, on(1)), at(12, Crash, 25, on(1)), at(13, Flush, 0)),
	// The same, but the node is only cut off, for a few seconds.
	"a mate that decided is cut off": pair(2, hourly, [][2]int64{{2, 10}, {15, 30}},
		at(0, Stick, 14, on(1)), at(14.5, Stick, 35, on(0)), at(13, MatesCut, 4, on(1)),
		at(13.5, Flush, 0)),
	// A node whose clock is two days off is refused by its store, and so heard nothing of the time
	// that the store showed its mate while its clock was ahead. Then the mate stands still, and the
	// node opens an empty store: windows that were used already came once more.
	"only a mate heard how far the store's time had come": pair(2, shortly, [][2]int64{{9, 17},
		{19, 40}}, at(0, Stick, 17, on(1)), at(17, Stick, 27, on(0)), at(5, NodeClock, 12.8, by(-2*24*3600)),
		at(9, StoreClock, 8.2, by(20)), at(16.9, Pause, 8, on(1)), at(17.3, StoreAnew, 0)),
	// The store's clock is ahead, and only one node hears of that, while the other is dead. The
	// store and the other node start again, and the node opens the store before the first one does.
	"a mate heard how far the store's time had come": pair(2, queued, [][2]int64{{9, 17},
		{18, 40}}, at(0, Stick, 44, on(1)), at(8, Crash, 30, on(0)), at(9, StoreClock, 8, by(20)),
		at(17, Reboot, 1, on(0)), at(17.9, Stick, 26, on(0))),
	// The store's clock was ahead and is right again, so that its mark holds its time. A copy of
	// before is put back: it shows the same time as the store that took its place.
	"a copy of a store whose time is held": pair(1, hourly, [][2]int64{{2, 10}, {15, 30}},
		at(0, StoreClock, 1.8, by(60)), at(4, Snapshot, 8)),
	"a mate that decided stands still": pair(2, hourly, [][2]int64{{2, 10}, {15, 30}},
		at(0, Stick, 14, on(1)), at(14.5, Stick, 35, on(0)), at(13, Pause, 4, on(1)),
		at(13.5, Flush, 0)),
	// Of three nodes the one that decided is dead. The two others hear each other.
	"of three nodes the one that decided is dead": pair(3, hourly, [][2]int64{{2, 10}, {15, 30}},
		at(0, Stick, 50, on(2)), at(12, Crash, 25, on(2)), at(13, Flush, 0)),
	// The rows of a bucket are restored late: the node that decided dies long after the loss, and
	// the bucket is first asked for after that.
	"a mate that decided dies before the bucket is asked for": pair(2, hourly,
		[][2]int64{{2, 10}, {25, 35}},
		at(0, Stick, 50, on(1)), at(12, Flush, 0), at(20, Crash, 20, on(1))),
	"a bucket is deleted while a mate that decided is dead": pair(2, hourly,
		[][2]int64{{2, 10}, {15, 30}},
		at(0, Stick, 50, on(1)), at(2, Stick, 1, on(0)), at(12, Crash, 25, on(1)),
		at(13, Delete, 0)),
	// A node's clock is two days ahead for ten seconds. The node forgot what it had seen and
	// written.
	"a node's clock is two days ahead": pair(1, daily, [][2]int64{{2, 10}, {30, 42}},
		at(12, NodeClock, 13, by(2*86400)), at(27, Flush, 0)),
	// A node's clock is 50 minutes ahead, which is believed. A bucket was deleted, and the node did
	// not notice.
	"a node's clock is ahead when a bucket is deleted": pair(1,
		"algorithm: fixed_window, limit: 1000, window: 600s", [][2]int64{{2, 10}, {30, 42}},
		at(12, NodeClock, 30, by(3000)), at(27, Delete, 0)),
	// The store's clock was ahead, and is right when the store comes back empty.
	"a store's clock was ahead before its machine was started anew": pair(1, shortly,
		[][2]int64{{2, 30}},
		at(5, StoreClock, 10, by(5)), at(14.8, Reboot, 0.5)),
	"an idle node opens a store whose clock was ahead": pair(2, shortly, [][2]int64{{2, 30}},
		at(0, Stick, 15.1, on(1)), at(5, StoreClock, 10, by(5)), at(15.1, Stick, 20, on(0)),
		at(14.99, Flush, 0), at(14.9, Pause, 8, on(1))),
	"a node alone whose store's clock was ahead loses it": pair(1, shortly, [][2]int64{{2, 30}},
		at(5, StoreClock, 10, by(5)), at(14.99, Flush, 0)),
	"the store's clock was ahead over a node's restart": pair(1, shortly, [][2]int64{{2, 30}},
		at(5, StoreClock, 10, by(5)), at(14.5, Crash, 0.6), at(14.99, Flush, 0)),
	// Units used in the next window, by a clock that was ahead, were not restored for that window.
	"a store's clock was ahead into the next window": into(70,
		pair(1, "algorithm: fixed_window, limit: 1000, window: 90s", [][2]int64{{4, 13}, {15, 17},
			{22, 34}},
			at(3, StoreClock, 11, by(25)), at(13.8, Reboot, 0.5))),
	"a bucket of tokens, and its store's clock was ahead": pair(1,
		"algorithm: token_bucket, limit: 300, window: 70s, burst: 150", [][2]int64{{2, 10},
			{20, 40}},
		at(3, StoreClock, 11, by(20)), at(13.8, Reboot, 0.5)),
	"all clocks of a region step back while a machine is started anew": pair(1, shortly,
		[][2]int64{{2, 40}},
		at(1, ClockStep, 13, by(20)), at(13.8, Reboot, 0.5)),
	"the token alone is lost": pair(1, shortly, [][2]int64{{2, 30}},
		at(5, StoreClock, 10, by(5)), at(14.5, Crash, 0.6), at(14.99, TokenLost, 0)),
	// A node forgot rows of its journal by a clock that nobody checked, and the journal counted as
	// whole.
	"a node's clock is two days ahead of what it lent": lending(pair(1,
		"algorithm: fixed_window, limit: 1000, window: 86400s", nil,
		at(2, Steady, 6, of(1)), at(12, NodeClock, 13, by(2*86400)), at(26.5, Cut, 10, both),
		at(27, Flush, 0), at(28, Steady, 10, of(0)), at(28, Steady, 10, of(1)))),
	"a node that has lost its journal is behind": lending(pair(1,
		"algorithm: fixed_window, limit: 1000, window: 600s", nil,
		at(2, Steady, 6, of(1)), at(11.9, NodeClock, 30, by(-1800)), at(12, JournalLost, 0),
		at(18.5, Cut, 10, both), at(20, Flush, 0), at(22, Steady, 10, of(0)),
		at(22, Steady, 10, of(1)))),
	// The part that a node admits in a window without its store is noted in its journal. The node
	// forgot it by a wrong clock.
	"a node's clock is ahead of its own part": local(pair(1, daily,
		[][2]int64{{1, 9}, {12, 20}, {35, 43}},
		at(10, StoreDown, 22), at(20, NodeClock, 11, by(4*86400)), at(31.1, Crash, 1),
		at(34, StoreDown, 9.5))),
	// A node's clock is two days ahead, so that the store refuses it and its own windows begin at
	// other times. What is kept out of the store for it falls twice into one of the store's.
	"a node's windows begin at other times": into(48, heavy(local(pair(1,
		"algorithm: fixed_window, limit: 100, window: 61s, local_reserve: 0.3", [][2]int64{{5, 40}},
		at(2, NodeClock, 20, by(2*86400)))))),
	// A virtual machine with the store is restored to its state of some seconds ago.
	"a snapshot of the store is put back": pair(1, hourly, [][2]int64{{2, 10}, {20, 30}},
		at(3, Snapshot, 12)),
	"a snapshot of the store is put back, of a short window": pair(1,
		"algorithm: fixed_window, limit: 60, window: 10s", [][2]int64{{2, 30}},
		at(10.1, Snapshot, 4)),
	"a snapshot is put back and its node starts anew": pair(1, hourly,
		[][2]int64{{2, 10}, {20, 30}},
		at(3, Snapshot, 12), at(14.5, Crash, 1)),
	"a snapshot is put back to two nodes": pair(2, hourly, [][2]int64{{2, 10}, {20, 30}},
		at(0, Stick, 15, on(1)), at(3, Snapshot, 12), at(15, Stick, 15, on(0))),
	// A bucket is deleted that its node had no room to remember. Nobody notices; a printed bound
	// covers this.
	"a bucket is deleted that there was no room to remember": crowded(pair(1, hourly,
		[][2]int64{{4, 12}, {16, 26}},
		at(1, Steady, 2, aside(1)), at(14, Delete, 0))),
	// A bucket is deleted whose store's clock was ahead. By the store's time, which does not go
	// back, the note of the node that knew of the bucket is over; a printed bound covers this.
	"a bucket is deleted whose store's time is ahead": pair(2,
		"algorithm: sliding_window_counter, limit: 300, window: 10s", [][2]int64{{1, 6}, {28, 40}},
		at(0, Stick, 30, on(1)), at(30, Stick, 2, on(0)), at(30, StoreClock, 1, by(10)),
		at(30.2, Steady, 0.5, each(10_000)), at(32, Delete, 0), at(32, Stick, 20, on(1)),
		at(32.1, Steady, 9, each(100_000))),
	// A store lost everything. While that still weighs, a bucket is restored, used and deleted. A
	// node without a note of it has it restored as of the first loss; a printed bound covers what
	// was used since.
	"a bucket is deleted while an earlier loss weighs": into(80, pair(2,
		"algorithm: sliding_window_counter, limit: 1000, window: 90s", [][2]int64{{14, 40}},
		at(0, Stick, 21, on(1)), at(5, Flush, 0), at(20, Pause, 4, on(1)), at(20.5, Delete, 0),
		at(21, Stick, 20, on(0)))),
	// A store is lost, and one node opens it anew while the other is paused. Then an older copy is
	// put back, in which the paused node finds what it knew. That node decides with the copy until
	// the first node notices at its next beat.
	"a copy of an earlier generation is put back to a node that stood still": pair(2, hourly,
		[][2]int64{{2, 30}},
		at(0, Stick, 9, on(1)), at(3.3, Pause, 5.75, on(0)), at(3.4, Snapshot, 5.6),
		at(3.5, Flush, 0), at(9, Stick, 1, on(0))),
	// A copy is put back, and a node that knew nothing later calls first. The copy's time goes on,
	// so that the node that knew better did not notice.
	"a copy is put back as a node starts": pair(2, hourly, [][2]int64{{2, 4}, {5, 10}, {20, 30}},
		at(0, Stick, 15, on(1)), at(3.5, Crash, 7.52, on(0)), at(4.5, Snapshot, 6.51),
		at(15, Stick, 15, on(0))),
	"a copy is put back as a node wakes": pair(2, hourly, [][2]int64{{2, 4}, {5, 10}, {20, 30}},
		at(0, Stick, 15, on(1)), at(3.5, Pause, 7.52, on(0)), at(4.5, Snapshot, 6.51),
		at(15, Stick, 15, on(0))),
	// The copy's first caller was dead while the other node used the bucket, and now that one is
	// dead. A printed bound covers that nobody notices.
	"a copy is put back while the node that knew better is dead": pair(2, hourly, [][2]int64{{2, 4},
		{5, 10}, {20, 30}}, at(0, Stick, 10.5, on(1)), at(3.5, Crash, 8, on(0)), at(4.5, Snapshot, 6.5),
		at(10.5, Crash, 30, on(1))),
	// A store that does not work for one node, because of that node's clock, is replaced by a copy.
	// The other node dies then, and loses its journal.
	"a copy is put back of a store that refuses the node that knew better": pair(2,
		"algorithm: token_bucket, limit: 1000, window: 600s",
		[][2]int64{{2, 10}, {11, 30}}, at(0, Stick, 40, on(0)), at(4, NodeClock, 30, on(1), by(-2*24*3600)),
		at(3, Snapshot, 8), at(11.02, JournalLost, 0.05, on(0))),
	"a copy of a second ago is put back while its node is dead": pair(1,
		"algorithm: fixed_window, limit: 600, window: 10s", [][2]int64{{1, 20}},
		at(2.1, Snapshot, 1), at(2.9, Crash, 0.5)),
	// The same, and the store's clock was ahead, so that times come again.
	"a copy is put back while its node is dead and its clock was ahead": pair(1,
		"algorithm: leaky_bucket, limit: 30, window: 10s", [][2]int64{{4, 40}},
		at(7, StoreClock, 6.7, by(26)), at(12.9, Snapshot, 0.4), at(13, Crash, 1)),
	// Its node's journal has the time of each beat.
	"a copy of two seconds ago is put back while its node is dead": pair(1,
		"algorithm: fixed_window, limit: 600, window: 10s", [][2]int64{{1, 20}},
		at(2.1, Snapshot, 1.8), at(3.7, Crash, 0.5)),
	// A store was so busy that its node heard its time only when it lent. The node died before its
	// next note of the time, and started again on a copy that knows nothing of the loan.
	"a copy is put back from before the last loan": lending(pair(1, hourly, [][2]int64{{13, 33}},
		at(1.4, Steady, 8, of(1)), at(1.1, Snapshot, 5.6), at(1.8, StoreBusy, 4, busy),
		at(5.94, Crash, 6))),
	// The copy that is put back is younger than the last time that its first caller heard.
	"a copy of a quarter of a second ago is put back to two nodes": pair(2, hourly,
		[][2]int64{{2, 5}, {20, 30}},
		at(0, Stick, 15, on(1)), at(13, Steady, 1.75, each(100_000)), at(14.55, Snapshot, 0.25),
		at(16, Stick, 15, on(0))),
	// What a node admitted without its store is charged to a queue that the store lost, while the region
	// is not sure of its documents and has no part.
	"a queue is charged while its region has none": Draw(301260, Config{For: 30_000_000, Wider: true,
		Only: []int{17, 19, 9, 29, 21}}),
	// A node wakes as its mate has found a copy, and not begun another generation yet; or its mate,
	// which knew better, is dead.
	"a copy is put back to a node that stands still": Draw(104211, Config{For: 30_000_000, Wider: true,
		Only: []int{15, 1, 3, 4, 5, 7}}),
	"a copy is put back to a node that stands still while its mate is dead": Draw(104211, Config{For: 30_000_000,
		Wider: true, Only: []int{15, 1, 4, 5, 7, 6}}),
}

func TestPlansThatOnceOverspent(t *testing.T) {
	keep(t, onceOverspent)
}
