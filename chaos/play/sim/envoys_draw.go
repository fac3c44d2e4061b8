package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/quotad/quotad/allocator"
)

// assigned changes a plan so that its only limit is a token bucket or a fixed window of which
// Envoys are assigned parts, and adds Envoys. It has a random stream of its own, so that seeds keep
// their meaning without it. tight says that all are asked for more than there is all the time, and that
// nothing happens for which an excess is allowed.
func assigned(p *Plan, tight bool) {
	random := p.random(forEnvoys, 0)
	if tight {
		assignedTightly(p, random)
		return
	}
	var b strings.Builder
	head, _, _ := strings.Cut(p.Document, "limits:\n")
	b.WriteString(head + "limits:\n")
	units := []int64{30, 120, 300, 300}[random.IntN(4)]
	burst := max(units*[]int64{1, 2, 4, 8}[random.IntN(4)]/8, int64(8*len(p.Regions)))
	most := max(burst*[]int64{1, 3, 6}[random.IntN(3)]/8, int64(4*len(p.Regions)))
	failure := []string{"local", "deny"}[random.IntN(2)]
	kind := fmt.Sprintf("token_bucket, limit: %d, window: 1s, burst: %d", units, burst)
	if random.IntN(3) == 0 { // with a window that a loss closes, or one that is recovered
		window := []int64{60, 70}[random.IntN(2)]
		kind = fmt.Sprintf("fixed_window, limit: %d, window: %ds", units*window/2, window)
	}
	fmt.Fprintf(&b, "  - {name: l0, domain: api0, key: [account], algorithm: %s, on_store_failure: %s, assign: {ttl: %ds, max_burst: %d}}\n",
		kind, failure, 6+random.IntN(10), most)
	p.Document, p.Refunds, p.Versions = b.String(), false, nil
	p.Acts = slices.DeleteFunc(p.Acts, func(a Act) bool { return a.Do.Load() })
	if random.IntN(2) == 0 {
		p.Acts = slices.DeleteFunc(p.Acts, func(a Act) bool { return a.Do.excuses() })
	}
	late := random.IntN(4) == 0
	idle := random.IntN(2) * len(p.Regions) // who has no demand lends what it has
	for r := range p.Regions {
		if r > 0 && idle > 0 && random.IntN(3) > 0 {
			continue
		}
		if random.IntN(4) > 0 { // who asks the store takes what Envoys leave of its tokens
			p.Acts = append(p.Acts, Act{Do: Steady, For: p.End, Region: r, Amount: 500 * units, Cost: 2})
		}
		for range 1 + random.IntN(3) {
			a := Act{Do: Proxy, At: random.Int64N(5 * allocator.Second), For: p.End, Region: r,
				Amount: 1000 * (1 + random.Int64N(units)), Back: late && random.IntN(3) == 0}
			p.Acts = append(p.Acts, a)
		}
	}
}

// assignedTightly is the tight draw of Envoys. Nodes stand still, too, as long as a minute.
func assignedTightly(p *Plan, random *rand.Rand) {
	head, _, _ := strings.Cut(p.Document, "limits:\n")
	units := []int64{60, 100, 300}[random.IntN(3)]
	burst := max(units*(1+random.Int64N(8))/8, int64(8*len(p.Regions)))
	kind := fmt.Sprintf("token_bucket, limit: %d, window: 1s, burst: %d", units, burst)
	if random.IntN(3) == 0 {
		kind = fmt.Sprintf("fixed_window, limit: %d, window: 60s", 20*units)
	}
	p.Document = fmt.Sprintf("%slimits:\n  - {name: l0, domain: api0, key: [account], algorithm: %s, on_store_failure: deny, assign: {ttl: %ds, max_burst: %d}}\n",
		head, kind, 6+random.IntN(10), max(burst/2, int64(4*len(p.Regions))))
	p.Refunds, p.Versions = false, nil
	p.Acts = slices.DeleteFunc(p.Acts, func(a Act) bool { return a.Do.Load() || a.Do.excuses() })
	for r := range p.Regions {
		p.Acts = append(p.Acts, Act{Do: Steady, For: p.End, Region: r, Amount: 1000 * units, Cost: 2})
		for range 1 + random.IntN(3) {
			p.Acts = append(p.Acts, Act{Do: Proxy, At: random.Int64N(5 * allocator.Second), For: p.End, Region: r,
				Amount: 1000 * units})
		}
		if random.IntN(3) == 0 {
			at := random.Int64N(p.Heal - allocator.Second)
			p.Acts = append(p.Acts, Act{Do: Pause, At: at, Region: r, Node: random.IntN(2), Peer: -1,
				For: min(random.Int64N(60*allocator.Second), p.Heal-at-1)})
		}
	}
}

// excuses reports whether a printed bound allows an excess for a deed.
func (d Deed) excuses() bool {
	switch d {
	case Flush, StoreAnew, Failover, Delete, StoreDown, JournalLost, JournalOld, ClockStep, StoreClock,
		NodeClock, Reboot, Snapshot, TokenLost, StoreBusy, Silence, NodeGone, ZoneLost, Recover, Freeze:
		return true
	}
	return false
}
