package client

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/held"
)

// wanted is units to be taken for a bucket.
type wanted struct {
	of    *Bucket
	units quantity.Units
}

// topUp has units taken for a bucket, if it uses enough of them. It does not wait.
func (c *Client) topUp(b *Bucket, now time.Duration) {
	if int64(now) < b.takesFrom.Load() {
		return
	}
	units := b.held.Want(1, now) // the node divides by its region's nodes
	if units == 0 {
		return
	}
	if !c.hold(b) {
		b.rest(now + refusedFor)
		b.held.Filled(nil)
		return
	}
	select {
	case c.wanted <- wanted{b, units}:
	default:
		b.held.Filled(nil)
	}
}

// rest has the bucket take no units until a time of the client's clock.
func (b *Bucket) rest(until time.Duration) {
	for {
		old := b.takesFrom.Load()
		if old >= int64(until) || b.takesFrom.CompareAndSwap(old, int64(until)) {
			return
		}
	}
}

// fillWanted takes units that are wanted, until the client ends.
func (c *Client) fillWanted() {
	for {
		select {
		case <-c.ending.Done():
			return
		case w := <-c.wanted:
			c.fill(w)
		}
	}
}

// fill takes units for a bucket. What is left of those that it held goes back. It is not cut off
// when the client ends, because units whose answer is not heard cannot be given back.
func (c *Client) fill(w wanted) {
	ctx, cancel := context.WithTimeout(context.Background(), c.patience())
	defer cancel()
	asked := c.clock.Elapsed()
	r, err := c.take(ctx, w.of, w.units)
	if err != nil || r.GetUnits() <= 0 {
		w.of.rest(c.clock.Elapsed() + refusedFor)
		w.of.held.Filled(nil)
		return
	}
	c.counters.taken.Add(r.GetUnits())
	g := grant{r.GetUnits(), r.GetReceipt(), decisionOf(r.GetDecision())}
	a := answerOf(g.decision, g.units, asked, c.clock.Elapsed())
	a.Charged = 0 // it counts when it is spent
	w.of.learn(a)
	a.Of, a.Ends = &g, a.Now.Add(r.GetSpendWithin().AsDuration().Microseconds())
	old := w.of.held.Filled(&held.Grant{Units: quantity.Units(g.units), Answer: a})
	if old != nil {
		c.giveBack(ctx, w.of, old)
	}
}

// patience is how long a call for units, or to give them back, may take. Who waits longer for a
// Check waits as long for these: units whose answer is not heard count as used.
func (c *Client) patience() time.Duration { return max(callTimeout, c.options.Timeout) }

// take asks for units, 0: none, and reports what the client decided of a bucket by itself.
func (c *Client) take(ctx context.Context, b *Bucket,
	units quantity.Units) (*quotadv1.TakeResponse, error) {
	admitted, denied := b.admitted.Swap(0), b.denied.Swap(0)
	c.counters.denied.Add(denied)
	r, err := c.rpc.Take(ctx, &quotadv1.TakeRequest{Domain: b.domain, Descriptors: b.descriptors,
		Units: int64(units), Admitted: min(admitted, maxUnits), Denied: min(denied, maxUnits)})
	switch status.Code(err) {
	case codes.OK:
		return r, nil
	case codes.FailedPrecondition, codes.Unimplemented:
		until := c.clock.Elapsed() + exactFor
		b.exactUntil.Store(int64(until))
		b.rest(until)
		c.counters.exact.Add(1)
	default:
		c.counters.failed.Add(1)
	}
	c.counters.unreported.Add(admitted + denied)
	return nil, err
}

// giveBack ends a chunk and gives back what is left of it. It returns the units that no node was
// told of, which count as used until their windows end.
func (c *Client) giveBack(ctx context.Context, b *Bucket, chunk *held.Chunk) (untold int64) {
	g, left := chunk.Of.(*grant), int64(chunk.End())
	b.admitted.Add(g.units - left)
	c.counters.admitted.Add(g.units - left)
	if left == 0 {
		return 0
	}
	if g.receipt == "" { // the node could not seal one
		c.counters.lost.Add(left)
		return left
	}
	used := g.units - left
	r, err := c.rpc.Settle(ctx, &quotadv1.SettleRequest{Receipt: g.receipt, Used: &used})
	if err != nil {
		c.counters.failed.Add(1)
		c.counters.lost.Add(left)
		return left
	}
	back := left
	for _, charge := range r.GetSettled() {
		back = min(back, charge.GetBack())
	}
	c.counters.returned.Add(back)
	c.counters.lost.Add(left - back) // they no longer count as used
	return 0
}

// sweepAll gives back units and reports denials now and then, until the client ends.
func (c *Client) sweepAll() {
	every := time.NewTicker(sweepEvery)
	defer every.Stop()
	for {
		select {
		case <-c.ending.Done():
			return
		case <-every.C:
			// A node that does not answer keeps Close waiting no longer than for one call.
			ctx, cancel := context.WithTimeout(context.Background(), c.patience())
			c.sweep(ctx, false)
			cancel()
		}
	}
}

// due is what is to be done for a bucket.
type due struct {
	of      *Bucket
	over    *held.Chunk // to be given back; nil: none
	reports bool
}

// sweep gives back what is left of chunks that are over, or with all of every chunk, and reports
// what was denied. It returns the units that no node was told of.
func (c *Client) sweep(ctx context.Context, all bool) (untold int64) {
	var lost atomic.Int64
	var calls sync.WaitGroup
	free := make(chan struct{}, maxCalls)
	for _, d := range c.due(all) {
		free <- struct{}{}
		calls.Go(func() {
			lost.Add(c.settle(ctx, d))
			<-free
		})
	}
	calls.Wait()
	return lost.Load()
}

// settle does what is due for a bucket. It returns what giveBack does.
func (c *Client) settle(ctx context.Context, d due) (untold int64) {
	ctx, cancel := context.WithTimeout(ctx, c.patience())
	defer cancel()
	if d.over != nil {
		untold = c.giveBack(ctx, d.of, d.over)
	}
	if d.reports {
		_, _ = c.take(ctx, d.of, 0) // what could not be reported is counted
	}
	return untold
}

// due returns what is to be done now. Buckets that hold nothing and have nothing to report are no
// longer holders.
func (c *Client) due(all bool) (list []due) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Elapsed()
	for b := range c.holders {
		chunk, holds := b.held.Over(now, all)
		denied := b.denied.Load() > 0
		d := due{of: b, over: chunk, reports: denied && (all || now-b.reported >= reportEvery)}
		if d.reports {
			b.reported = now
		}
		if d.over != nil || d.reports {
			list = append(list, d)
		}
		if !holds && !denied {
			delete(c.holders, b)
		}
	}
	return list
}
