package algorithms

import "github.com/quotad/quotad/quantity"

// Settle answers the settle script at store time t.
func (w *Twin) Settle(t quantity.StoreTime, c Settle) Settled {
	head := w.enter(t, c.Fence)
	if head.Status != StatusOK {
		return Settled{Head: head}
	}
	now := head.Now
	if c.Cost < 1 || c.Cost > MaxUnits || c.Used < 0 || c.Used > MaxUnits {
		return Settled{Head: Head{Status: StatusImplausible}}
	}
	if before, ok := w.settled[c.Receipt]; ok && c.Receipt != "" {
		before.Repeated = true
		return before
	}
	g := Settled{Head: head, Used: c.Used}
	for _, charge := range c.Charges {
		if charge.Terms.Kind == "" {
			continue
		}
		if !c.names(charge.Terms, now) {
			return Settled{Head: Head{Status: StatusCalendar, Now: now}}
		}
		if h := w.find(charge.Key, charge.Terms, charge.ExistsUntil, now); h.lost() {
			return Settled{Head: h.lostHead()}
		}
	}
	if c.Used == 0 && w.decided[c.Once].Now == c.At {
		delete(w.decided, c.Once)
	}
	for _, charge := range c.Charges {
		if charge.Terms.Kind == "" {
			g.Charges = append(g.Charges, SettledCharge{Refusal: NoSuchLimit})
			continue
		}
		h := w.hold(charge.Key, charge.Terms, now)
		l := h.limiter()
		g.Charges = append(g.Charges, settle(l, c, charge, h))
		l.save()
	}
	if c.Receipt == "" {
		return g
	}
	put(&w.settled, c.Receipt, g)
	return g
}

// settle settles one charge.
func settle(l limiter, c Settle, charge Charge, h held) (done SettledCharge) {
	switch more := c.Used - c.Cost; {
	case c.At == 0:
		done.Back, done.Refusal = uncharge(l, c.Cost, h)
	case charge.Until > 0 && h.now >= charge.Until:
		done.Refusal = SettledLate
	case more < 0:
		done.Back, done.Refusal = l.refund(c.At, charge.Cell, -more)
	case more > 0 && h.Kind == LeakyBucket:
		done.Refusal = TurnPromised
	case more > 0:
		done.Charged, done.Owed = more, max(more-max(l.state().Free, 0), 0)
		l.charge(more, charge.MostOwed)
	}
	return done
}

// uncharge takes back what was charged last.
func uncharge(l limiter, units quantity.Units, h held) (quantity.Units, Refusal) {
	if newest, ok := l.(interface {
		refundNewest(quantity.Units) (quantity.Units, Refusal)
	}); ok {
		return newest.refundNewest(units)
	}
	return l.refund(h.now, h.cell, units)
}

// Reset answers the reset script at store time t.
func (w *Twin) Reset(t quantity.StoreTime, c Reset) Cleared {
	head := w.enter(t, c.Fence, c.Terms)
	if head.Status != StatusOK {
		return Cleared{Head: head}
	}
	now := head.Now
	h := w.find(c.Key, c.Terms, c.ExistsUntil, now)
	if h.lost() {
		return Cleared{Head: h.lostHead()}
	}
	l := h.limiter()
	g := Cleared{Head: head, State: h.show(l)}
	l.reset()
	l.save()
	if h.bucket.most > 0 {
		h.bucket.most = 0
		h.keep()
	}
	return g
}
