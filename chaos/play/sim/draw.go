package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// Config says what kind of plans to draw.
type Config struct {
	Regions   int             // 2 to 10; 0: the seed chooses, mostly 3
	Nodes     int             // of each region; 0: the seed chooses 1 or 2
	Limits    int             // 1 to 3; 0: the seed chooses
	Algorithm algorithms.Kind // of all limits; empty: the seed chooses
	Window    int64           // of all limits, µs, in whole seconds; 0: the seed chooses
	Faults    []Deed          // the only kinds of faults, then frequent; none: the seed chooses
	For       int64           // length of the run, µs, at least 20 s
	Lua       bool            // see Plan.Lua
	Wider     bool            // use the wider draw, see wider.go
	Tight     bool            // use the draw that comes near what the judge allows, see tight.go
	Spanning  bool            // add requests over several shards and calls of several requests
	Prefetch  bool            // have nodes hold units of limits, with loads that make them do so
	Documents bool            // change the limits document in substance, again and again
	Varied    bool            // have limits say what the other draws leave out, see varied.go
	Envoys    bool            // have token buckets alone, of which Envoys are assigned parts
	Owing     bool            // have limits be charged costs that are known only afterwards
	Classes   bool            // have limits with classes, and requests of them
	Large     bool            // have requests of large costs, whose callers come again
	Busy      bool            // have stores take time, and more asked of them than they can decide
	Calendar  bool            // have fixed windows count by the calendar of a time zone
	Only      []int           // IDs of the acts to keep; nil: all

	lowered quantity.Units // see Plan.lowered
	settled bool           // leave out comings: for seeds that were kept before there were any
}

// drawing is a plan that is being drawn.
type drawing struct {
	*rand.Rand
	Config
	plan    *Plan
	refunds bool // all limits so far are fixed windows: only there can refunds be checked
	theme   theme
	kinds   []algorithms.Kind // of each limit
	windows []int64
	limits  []int64
}

// theme is what a seed concentrates on, because rare combinations hardly come up by chance alone.
type theme int

const (
	mixed  theme = iota
	losses       // long recovered windows, lost data, nodes that do not hear of it
	calm         // hardly a fault, but contention at the ends of cells
	clocks       // clocks apart
	wider        // the theme of the wider draw
)

// Draw draws the plan of a seed.
func Draw(seed uint64, c Config) *Plan {
	p := &Plan{Seed: seed, Lua: c.Lua, lowered: c.lowered, End: c.For, Keys: []string{"k0", "k1"}}
	switch {
	case c.Tight:
		drawTight(p, c)
	case c.Wider:
		drawWider(p, c)
	default:
		draw(p, c)
	}
	if c.Prefetch {
		prefetch(p)
	}
	if c.Calendar {
		calendars(p)
	}
	if c.Envoys {
		assigned(p, c.Tight)
	}
	if c.Varied {
		vary(p)
	}
	if c.Owing {
		owe(p)
	}
	if c.Classes {
		classify(p)
	}
	p.Large = c.Large
	if c.Spanning {
		spread(p)
	}
	if c.Busy {
		overload(p)
	}
	if c.Documents {
		changes(p)
	}
	for i := range p.Acts {
		p.Acts[i].ID = i
	}
	if c.Only != nil {
		p.Acts = slices.DeleteFunc(p.Acts,
			func(a Act) bool { return !slices.Contains(c.Only, a.ID) })
	}
	slices.SortStableFunc(p.Acts, func(a, b Act) int { return cmp.Compare(a.At, b.At) })
	return p
}

// draw draws a plan by the first draw, that is, not the wider one.
func draw(p *Plan, c Config) {
	d := &drawing{Rand: p.random(forPlan, 0), Config: c, plan: p}
	d.theme = one(d, mixed, mixed, losses, calm, clocks)
	d.regions()
	d.document()
	p.Refunds = d.refunds && d.IntN(3) > 0
	p.Heal = c.For - healing
	d.load()
	d.faults()
}

// one returns one of the given values at random.
func one[T any](d *drawing, of ...T) T { return of[d.IntN(len(of))] }

// within returns a random number in from..to, both included.
func (d *drawing) within(from, to int64) int64 { return from + d.Int64N(to-from+1) }

func (d *drawing) regions() {
	n := d.Config.Regions
	if n == 0 {
		n = one(d, 2, 3, 3, 3, 3, 4, 5)
	}
	skewed := d.IntN(3) > 0
	apart := one(d, 0, 0, 0, 40_000, 2_000_000)
	if d.theme == clocks {
		apart = one(d, 40_000, 300_000, 1_000_000, 3_000_000)
	}
	for i := range n {
		r := RegionPlan{Name: fmt.Sprintf("r%d", i), Weight: 1, Nodes: one(d, 1, 1, 1, 2),
			Newer: d.IntN(8) == 0}
		if skewed {
			r.Weight = d.within(1, 5)
		}
		if d.Nodes > 0 {
			r.Nodes = d.Nodes
		}
		if apart > 0 {
			r.Ahead = d.within(-int64(apart), int64(apart))
			r.Drift = one(d, int64(0), 0, 0, d.within(-100, 100))
		}
		d.plan.Regions = append(d.plan.Regions, r)
	}
	for i := range n {
		d.plan.OneWay = append(d.plan.OneWay, make([]int64, n))
		for j := range n {
			if i != j {
				d.plan.OneWay[i][j] = one(d, d.within(1_000, 20_000), d.within(20_000, 90_000),
					d.within(20_000, 90_000), d.within(90_000, 300_000))
			}
		}
	}
}

// document writes the limits document: one to three limits, some of which apply to the same
// requests.
func (d *drawing) document() {
	var b strings.Builder
	b.WriteString("regions:\n")
	for _, r := range d.plan.Regions {
		fmt.Fprintf(&b, "  %s: {weight: %d}\n", r.Name, r.Weight)
	}
	b.WriteString("limits:\n")
	together := d.IntN(3) == 0
	many := one(d, 1, 1, 2, 2, 3)
	if d.theme == losses || d.theme == wider && d.IntN(4) > 0 {
		many = 1
	}
	if d.Limits > 0 {
		many = d.Limits
	}
	for i := range many {
		domain := "api"
		if !together {
			domain = fmt.Sprintf("api%d", i)
		}
		d.limit(&b, i, domain)
	}
	d.plan.Document = b.String()
	if together && !d.plan.light() { // no request may meet them all
		for i := range many {
			d.plan.Document = strings.Replace(d.plan.Document, "domain: api,",
				fmt.Sprintf("domain: api%d,", i), 1)
		}
	}
}

func (d *drawing) limit(b *strings.Builder, i int, domain string) {
	kind := d.Algorithm
	if kind == "" {
		kind = one(d, algorithms.Kinds...)
	}
	window := d.window()
	units := one(d, int64(3), 10, 12, 30, 60, 100, 100, 300, 1000)
	if kind == algorithms.SlidingWindowLog {
		units = min(units, 300)
	}
	d.kinds, d.windows, d.limits = append(d.kinds, kind), append(d.windows, window),
		append(d.limits, units)
	d.refunds = kind == algorithms.FixedWindow && (i == 0 || d.refunds)
	fmt.Fprintf(b, "  - {name: l%d, domain: %s, key: [account], algorithm: %s, limit: %d, window: %ds", i, domain, kind, units, window/allocator.Second)
	if kind.Bucket() && d.IntN(2) == 0 {
		fmt.Fprintf(b, ", burst: %d", max(units/one(d, int64(1), 2, 5), 2))
	}
	if d.IntN(4) == 0 {
		fmt.Fprintf(b, ", lending_limit: %s", one(d, "1", "0.5"))
	} else if d.theme == wider && d.IntN(3) == 0 {
		b.WriteString(", lending_limit: 0")
	}
	if d.IntN(3) == 0 {
		b.WriteString(", on_exhausted: borrow")
	}
	switch d.IntN(4) {
	case 0:
		b.WriteString(", on_store_failure: local")
	case 1:
		b.WriteString(", on_store_failure: local, local_reserve: 0.1")
	default:
		b.WriteString(", on_store_failure: deny")
	}
	b.WriteString("}\n")
}

// window draws a limit's window, µs. If losses are the theme, it is long enough to be recovered.
func (d *drawing) window() int64 {
	switch {
	case d.Window > 0:
		return d.Window
	case d.theme == wider:
		return one(d, int64(1), 2, 10, 30, 61, 61, 63, 70, 80, 90, 90, 300, 600, 3600,
			86400) * allocator.Second
	case d.theme == losses:
		return one(d, int64(70), 90, 300, 3600) * allocator.Second
	}
	return one(d, int64(1), 1, 2, 3, 5, 5, 10, 20, 60, 90, 300) * allocator.Second
}

// load draws loads that use up the limits, at different places and times.
func (d *drawing) load() {
	for l := range d.kinds {
		perSecond := max(d.limits[l]*allocator.Second/d.windows[l], 1)
		for range d.within(3, 6) {
			a := Act{Do: one(d, Steady, Steady, Wave, Burst, Edge, Edge),
				Region: d.IntN(len(d.plan.Regions)), Limit: l, Key: one(d, 0, 0, 0, 1)}
			a.At = d.Int64N(d.plan.Heal)
			a.For = min(d.within(allocator.Second, 20*allocator.Second), d.plan.Heal-a.At)
			switch a.Do {
			case Burst:
				a.For = min(a.For, one(d, int64(1000), 50_000, 500_000))
				a.Amount = d.within(5, 30)
				a.Cost = quantity.Units(max(d.limits[l]/one(d, int64(4), 10, 30), 1))
			case Edge:
				a.Amount = d.within(4, 12)
				a.Cost = quantity.Units(max(d.limits[l]/one(d, int64(2), 5, 10, 30), 1))
				if cell := algorithms.CellLength(d.kinds[l], d.windows[l]); a.For < 3*cell {
					a.At, a.For = d.Int64N(max(d.plan.Heal-3*cell, 1)), 3*cell
					a.For = min(a.For, d.plan.Heal-a.At)
				}
			default:
				// In units a second, below the limit or above it.
				want := perSecond * one(d, int64(3), 8, 12, 20, 40) / 10
				a.Amount = min(max(want*1000, 500), one(d, int64(4_000), 10_000, 20_000))
				a.Cost = quantity.Units(max(want*1000/a.Amount, 1) * 2)
			}
			d.add(a)
		}
		d.ambush(l, perSecond)
	}
}

// ambush has one region ask for more than the limit for some cells, so that others lend it what
// they do not use. A second region then uses all it has around the ends of these cells.
func (d *drawing) ambush(l int, perSecond int64) {
	cell := algorithms.CellLength(d.kinds[l], d.windows[l])
	if length := max(4*cell, 3*allocator.Second); length < d.plan.Heal && (d.theme == calm ||
		d.IntN(3) == 0) {
		at := d.Int64N(d.plan.Heal - length)
		eager := d.IntN(len(d.plan.Regions))
		idle := (eager + 1 + d.IntN(len(d.plan.Regions)-1)) % len(d.plan.Regions)
		amount := min(max(perSecond*1500, 1000), 20_000)
		d.add(Act{Do: Steady, At: at, For: length, Region: eager, Limit: l, Amount: amount,
			Cost: quantity.Units(max(perSecond*3000/amount, 1))})
		d.add(Act{Do: Edge, At: at, For: length, Region: idle, Limit: l, Amount: d.within(6, 14),
			Cost: quantity.Units(max(d.limits[l]/d.within(3, 12), 1))})
	}
}

func (d *drawing) add(a Act) { d.plan.Acts = append(d.plan.Acts, a) }

// faults draws frequent faults of a few kinds: those of one seed come together.
func (d *drawing) faults() {
	all := []Deed{Cut, Cut, Cut, CutHints, Lossy, Slow, Crash, Leave, CrashPoints, CrashPoints,
		JournalFails, JournalLost, JournalOld, Flush, StoreAnew,
		Failover, Delete, StoreDown, ReplyLost, Pause, ClockStep, StoreClock, Policy, OldFile, Lie,
		Forge}
	least, most := int64(2), int64(12)
	switch d.theme {
	case losses:
		all = []Deed{Flush, Flush, StoreAnew, Failover, Delete, JournalLost, JournalOld, Cut, Cut,
			Crash, CrashPoints, Slow, Lossy, Pause, StoreDown}
		least, most = 6, 20
	case calm:
		least, most = 0, 2
	case clocks:
		all = []Deed{ClockStep, StoreClock, ClockStep, Slow, Lossy, Cut, Crash, Pause}
		least, most = 0, 6
	}
	kinds := d.Faults
	if len(kinds) > 0 {
		least, most = 8, 24
	}
	for range d.within(1, 5) {
		if len(d.Faults) == 0 {
			kinds = append(kinds, one(d, all...))
		}
	}
	for range d.within(least, most) {
		d.fault(one(d, kinds...))
	}
}

func (d *drawing) fault(deed Deed) {
	n := len(d.plan.Regions)
	a := Act{Do: deed, At: d.Int64N(d.plan.Heal - allocator.Second), Region: d.IntN(n), Peer: -1,
		Node:  d.IntN(2),
		Limit: d.IntN(len(d.kinds)), Key: one(d, 0, 0, 0, 1)}
	a.For = one(d, d.within(1_000, 500_000), d.within(allocator.Second, 5*allocator.Second),
		d.within(5*allocator.Second, 25*allocator.Second))
	other := (a.Region + 1 + d.IntN(n-1)) % n
	switch deed {
	case Cut, CutHints, Slow, Lossy:
		a.Back = d.IntN(3) > 0
		if d.IntN(2) == 0 {
			a.Peer = other
		}
		a.Amount = map[Deed]int64{Lossy: one(d, int64(10), 300, 300, 900),
			Slow: d.within(50_000, 700_000)}[deed]
	case CrashPoints:
		a.Amount = one(d, int64(3), 20, 100)
	case JournalFails, Crash, Leave:
		a.For = d.within(1_000, 3*allocator.Second)
	case Pause:
		a.For = one(d, d.within(1_000, 500_000), d.within(allocator.Second, 8*allocator.Second))
	case ClockStep:
		a.Amount = one(d, d.within(-50_000, 50_000), d.within(-3_000_000, 3_000_000),
			one(d, int64(-1), 1)*d.within(600_000_000, 3_000_000_000))
	case StoreClock:
		a.Amount = one(d, d.within(-3_000_000, 3_000_000),
			one(d, int64(-1), 1)*one(d, int64(7_200_000_000), 31_536_000_000_000))
	case Policy:
		a.For = d.within(0, 4*allocator.Second)
	case Forge:
		a.Peer = other
		a.For = 0
	case NodeClock:
		a.Amount = one(d, int64(-1), 1) * one(d, d.within(1, 60), 20*60, 48*3600) * allocator.Second
	case Lie:
		a.For = min(a.For, 5*allocator.Second)
	case NodeAdded:
		a.Back, a.Amount = d.IntN(3) > 0, one(d, 0, d.within(allocator.Second/2, 3*allocator.Second))
	case ZoneLost:
		a.Amount = one(d, int64(1), maxNodes)
	case Freeze:
		a.For, a.Amount = d.within(1_000, 20*allocator.Second), d.within(0, 10*allocator.Second)
	}
	a.For = min(a.For, d.plan.Heal-a.At-1)
	d.add(a)
	if (deed == Cut || deed == Flush || deed == Delete) && d.IntN(3) == 0 { // repeat it
		for again := d.IntN(4); again > 0; again-- {
			a.At += a.For + d.within(100_000, 2*allocator.Second)
			if a.At >= d.plan.Heal-allocator.Second {
				return
			}
			a.For = min(a.For, d.plan.Heal-a.At-1)
			d.add(a)
		}
	}
}
