package client

import (
	"context"
	"time"

	"github.com/quotad/quotad/algorithms"
)

// spendMeter is how long a step of a meter is used at most. A limit counts a unit from when it is charged;
// one that is used much later would count for too short.
const spendMeter = time.Second

// Meter charges a stream as it goes, such as the tokens of an answer: it reserves a step of units before
// they are used, and gives back what is left of it, so the limits hold. Not safe for concurrent use.
type Meter struct {
	client *Client
	of     Request
	step   int64

	last    Decision // on the present step
	cost    int64    // of the present step; 0: there is none
	left    int64    // of it
	until   time.Time
	settles error // why the last step was not settled; nil: it was
}

// Meter returns a meter of requests of a domain with these descriptors. A step, 1 to 2^51 units, is what it
// reserves at a time: about what the stream uses in a second or less, since a step is used for a second at
// most. Close it when the stream ends.
func (c *Client) Meter(domain string, descriptors map[string]string, step int64) *Meter {
	return &Meter{client: c, step: max(step, 1), of: Request{Domain: domain, Descriptors: descriptors, Receipt: true}}
}

// Use asks whether so many more units may be used, 1 to 2^51, before they are. It asks a node only if the
// present step is used up or over. If they are denied, none of them may be used, and the stream should end:
// what was used before stays charged. The error is that of Check.
func (m *Meter) Use(ctx context.Context, units int64) (Decision, error) {
	if !time.Now().Before(m.until) {
		m.giveBack(ctx)
	}
	if units >= 1 && units <= m.left {
		m.left -= units
		return m.last, nil
	}
	lacking := units - m.left
	d, asked, err := m.reserve(ctx, max(m.step, lacking))
	if err == nil && !d.Allowed && lacking < m.step { // there may be room for less
		d, asked, err = m.reserve(ctx, lacking)
	}
	if err != nil || !d.Allowed {
		return d, err
	}
	// What was left of the step before is used now: it was charged whole, and needs no settling.
	m.last, m.cost, m.left = d, asked.cost, asked.cost-lacking
	m.until = asked.at.Add(spendWithin(d))
	if d.Receipt == "" { // no store charged it, and nothing of it can be given back
		m.cost, m.left = 0, 0
	}
	return d, nil
}

// Close gives back what is left of the present step. The error says why that failed: then it counts as
// used.
func (m *Meter) Close(ctx context.Context) error {
	m.giveBack(ctx)
	return m.settles
}

// reserved is a step that a node was asked for.
type reserved struct {
	cost int64
	at   time.Time // before it was asked
}

func (m *Meter) reserve(ctx context.Context, cost int64) (Decision, reserved, error) {
	asked := reserved{cost, time.Now()}
	q := m.of
	q.Cost = cost
	d, err := m.client.Check(ctx, q)
	return d, asked, err
}

// giveBack settles the present step by what was used of it.
func (m *Meter) giveBack(ctx context.Context) {
	if m.left > 0 {
		_, m.settles = m.client.Settle(ctx, m.last.Receipt, m.cost-m.left)
	}
	m.cost, m.left = 0, 0
}

// spendWithin returns how long a step may be used: not beyond the window that it was charged in.
func spendWithin(d Decision) time.Duration {
	within := spendMeter
	for _, l := range d.Limits {
		if l.Algorithm == string(algorithms.FixedWindow) && l.Counted {
			within = min(within, l.ResetAfter)
		}
	}
	if len(d.Limits) == 0 && d.Algorithm == string(algorithms.FixedWindow) {
		within = min(within, d.ResetAfter)
	}
	return within
}
