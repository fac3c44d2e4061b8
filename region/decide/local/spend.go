package local

import (
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/rules"
)

// Charge is one limit that applies to a request, and what the request costs of it. A cost of 0 asks
// whether a unit is left, and charges nothing.
type Charge struct {
	*rules.Applied
	Cost quantity.Units
	Part quantity.PPM // that its class may use of the node's part, all use counted; 0: all
}

// may returns how much of the node's part the charge's class may use.
func (c Charge) may(all quantity.Units) quantity.Units {
	if c.Part == 0 {
		return all
	}
	return algorithms.Portion(all, c.Part)
}

// Spent says whether a request was admitted without the store, by the limit that decided: one that
// has no room, else the one with least left.
type Spent struct {
	Admitted bool
	Of       int            // place of the limit among the request's charges
	Left     quantity.Units // of the part of its bucket, after the request if it was admitted
	Kept     quantity.Units // what is left besides, for classes that may use more
	Reset    time.Duration  // until the window ends
	Never    bool           // the cost is above the whole part
	Owed     quantity.Units // of Keep: what did not fit
}

// Spend charges a request to this node's parts: to those of all its limits, or to none. There is at
// least one. Without commit it charges nothing, and says what would become of the request.
func (p *Part) Spend(all []Charge, commit bool) (s Spent) {
	now := p.now()
	// All limits are checked before any is charged, so that a denial leaves no record and no claim
	// of the limits that had room.
	if commit && len(all) > 1 {
		claims, denied, room := p.fits(all, now)
		if !room {
			return denied
		}
		p.claimAll(claims)
	}
	var units quantity.Units
	charged := make([]quantity.Cell, 0, len(all)) // the windows
	for i, c := range all {
		m := p.take(c, commit, now)
		if !m.room {
			for n, window := range charged {
				p.giveBack(all[n].Applied, all[n].Cost, window)
			}
			return m.denies(i)
		}
		if commit {
			charged, units = append(charged, m.window), units+c.Cost
		}
		if i == 0 || m.left < s.Left {
			s = Spent{Admitted: true, Of: i, Left: m.left, Kept: m.kept, Reset: m.reset}
		}
	}
	p.admitted.Add(float64(units))
	return s
}

// Keep takes a charge of which it does not matter whether it fits (charge: always), until the store is
// charged with it. Of a reserve it takes nothing. kept is false if there is no memory for its bucket, or
// the window has just ended: then the charge is lost.
func (p *Part) Keep(c Charge) (s Spent, kept bool) {
	now, part := p.now(), p.of(c.Applied)
	k, fresh, full := p.look(c.Applied, now)
	s.Reset = p.untilEnd(k, now)
	if full {
		s.Owed = c.Cost
		return s, false
	}
	if fresh && p.spentBefore(claiming{c.Bucket.ID, k}) {
		part = 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if w, _ := p.find(k, c.Bucket.ID); w == nil && !p.begin(k, c.Bucket.ID) {
		s.Owed = c.Cost
		return s, false
	}
	w, i := p.find(k, c.Bucket.ID)
	s.Left = max(part-w.record(i).units, 0)
	s.Owed = max(c.Cost-s.Left, 0)
	s.Left, s.Admitted = max(s.Left-c.Cost, 0), s.Owed == 0
	p.keep(k, c.Bucket.ID, c.Cost)
	p.admitted.Add(float64(c.Cost))
	return s, true
}

// spentBefore reports whether an earlier life of the node may have spent its part of a bucket.
func (p *Part) spentBefore(of claiming) bool {
	if p.claims == nil {
		return false
	}
	before, err := p.claims.before(of)
	return err != nil || before
}

// untilEnd returns the time until a window ends.
func (p *Part) untilEnd(k windowKey, clock time.Time) time.Duration {
	return quantity.Duration(k.windows.Opens(k.number + 1).Sub(
		max(quantity.StoreTime(clock.UnixMicro()), k.windows.Opens(k.number))))
}

// Claim claims in one commit what several requests will spend. Otherwise each would wait for a
// commit of its own.
func (p *Part) Claim(requests [][]Charge) {
	var claims []claiming
	now := p.now()
	for _, all := range requests {
		fresh, _, _ := p.fits(all, now)
		claims = append(claims, fresh...)
	}
	p.claimAll(claims)
}

// fits reports whether a request has room in the parts of all its limits. It returns what is to be
// claimed before the request is charged, or the denial.
func (p *Part) fits(all []Charge, now time.Time) (claims []claiming, denied Spent, room bool) {
	for i, c := range all {
		m := p.take(c, false, now)
		if !m.room {
			return nil, m.denies(i), false
		}
		if m.fresh != nil {
			claims = append(claims, *m.fresh)
		}
	}
	return claims, Spent{}, true
}

// metered is the outcome of one cost on one bucket.
type metered struct {
	room   bool
	left   quantity.Units // remaining units of the part, after the cost if there was room
	kept   quantity.Units // remaining besides, of the part's share that the class may not use
	reset  time.Duration  // until the window ends
	never  bool           // the cost is above the whole part
	window quantity.Cell  // number of the window that was charged
	fresh  *claiming      // not nil: what is to be claimed before anything is charged
}

// denies returns the denial of a limit without room.
func (m metered) denies(of int) Spent {
	return Spent{Of: of, Left: m.left, Kept: m.kept, Reset: m.reset, Never: m.never}
}

// claiming is about this node's part of one bucket in one window.
type claiming struct {
	bucket string
	key    windowKey
}

// take charges a cost to this node's part of a bucket if there is room. If it is not known how much
// of a window was spent, all of it counts as spent.
func (p *Part) take(c Charge, commit bool, clock time.Time) metered {
	a, cost := c.Applied, c.Cost
	all, asks := p.of(a), cost == 0
	part := c.may(all)
	if asks {
		cost, commit = 1, false
	}
	k, fresh, full := p.look(a, clock)
	m := metered{window: k.number, never: cost > part, reset: p.untilEnd(k, clock)}
	if cost > part || full {
		return m
	}
	if fresh && p.claims != nil {
		of := claiming{a.Bucket.ID, k}
		if before, err := p.claims.before(of); err != nil || before {
			return m
		}
		if asks {
			m.fresh = nil
		} else if !commit {
			m.fresh = &of
		} else if p.claims.claim([]claiming{of}) != nil {
			return m
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// The window may have ended while the journal was waited for.
	if k.windows.At(p.mark) != k.number {
		return m
	}
	var s spent
	w, i := p.find(k, a.Bucket.ID)
	if w != nil {
		s = *w.record(i)
	}
	m.room = s.units+cost <= part
	m.left = max(part-s.units, 0)
	m.kept = max(all-s.units, 0) - m.left
	if !m.room {
		return m
	}
	if commit && w == nil && !p.begin(k, a.Bucket.ID) {
		return metered{window: k.number, reset: m.reset}
	}
	if !asks {
		m.left -= cost
	}
	if commit {
		p.add(k, a, cost)
	}
	return m
}

// claimAll claims what is to be spent next. If that fails, take finds it unclaimed.
func (p *Part) claimAll(all []claiming) {
	if p.claims != nil && len(all) > 0 {
		_ = p.claims.claim(all)
	}
}

// look returns the present window. fresh says that nothing of the bucket was spent in it yet.
// full says that there is no memory to do so.
func (p *Part) look(a *rules.Applied, clock time.Time) (k windowKey, fresh, full bool) {
	windows := a.Target.Terms.Windows()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mark = max(p.mark, quantity.StoreTime(clock.UnixMicro()))
	k = keyOf(a, windows.At(p.mark))
	if w, i := p.find(k, a.Bucket.ID); w != nil {
		return k, w.record(i).kept, false
	}
	full = !p.room(k, a.Bucket.ID)
	if full {
		p.refused++
	}
	return k, true, full
}

// room reports whether there is memory for one more bucket. If not, it first drops the windows that no
// longer count.
func (p *Part) room(k windowKey, id string) bool {
	bytes := recordBytes + len(id) - len(k.head)
	if p.bytes+bytes > p.most {
		p.drop()
	}
	return p.bytes+bytes <= p.most
}

// giveBack subtracts a cost from the window to which it was charged.
func (p *Part) giveBack(a *rules.Applied, cost quantity.Units, number quantity.Cell) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := keyOf(a, number)
	if w, _ := p.find(k, a.Bucket.ID); w != nil {
		p.add(k, a, -cost)
	}
}
