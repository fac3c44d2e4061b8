package admit

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/held"
	"github.com/quotad/quotad/region/base/repeat"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/store"
)

// A node may hold units of a bucket whose limit says consistency: prefetch: a chunk, which the
// store was charged with beforehand. Requests are admitted from it without asking the store. What
// is left of a chunk goes back to the store when the chunk is over, when the region has fewer
// rights, when the document changes, and when the node ends.

const (
	// maxHolders bounds the buckets of which the node holds chunks at a time. All further buckets
	// are exact.
	maxHolders = 4096
	// fetchers is how many chunks are asked for at a time, and maxWanted how many wait for that.
	// Beyond it, requests ask the store until one of them finds a place for its bucket.
	fetchers  = 16
	maxWanted = 256
	// sweepEvery is how often the node looks for chunks that are over.
	sweepEvery = 100 * time.Millisecond
	// returnEvery is how often the node does so when it ends.
	returnEvery = 5 * time.Millisecond
	// maxReturned bounds the chunks that go back in one round trip. At some 30 us each, a decision
	// behind it waits a millisecond or two.
	maxReturned = 64
)

// chunks are the buckets of which a node holds chunks, or asks for one.
type chunks struct {
	wanted chan wanted

	mu      sync.Mutex
	holders map[*rules.Applied]*rules.Rules
	ended   bool // there are to be none any more
}

func newChunks() *chunks {
	return &chunks{wanted: make(chan wanted, maxWanted), holders: map[*rules.Applied]*rules.Rules{}}
}

// wanted is a chunk to be asked for.
type wanted struct {
	rules *rules.Rules
	of    *rules.Applied
	units quantity.Units
}

// hold notes that the node may hold a chunk of a bucket. It reports whether it may.
func (c *chunks) hold(r *rules.Rules, a *rules.Applied) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.holders[a]; c.ended || !known && len(c.holders) >= maxHolders {
		return false
	}
	c.holders[a] = r
	return true
}

// end has the node hold no more chunks.
func (c *chunks) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// none reports whether the node holds no chunk, and asks for none.
func (c *chunks) none() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.holders) == 0
}

// over returns the chunks that are over at a time, those under other rules than the present ones,
// and with all every chunk.
func (c *chunks) over(present *rules.Rules, now time.Duration, all bool) (over []leftover) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for a, r := range c.holders {
		chunk, holds := a.Held.Over(now, all || r != present)
		if !holds {
			delete(c.holders, a)
		}
		if chunk != nil {
			over = append(over, leftover{a, chunk, chunk.End()})
		}
	}
	slices.SortFunc(over, func(a, b leftover) int {
		return strings.Compare(a.of.Bucket.ID, b.of.Bucket.ID)
	})
	return over
}

// spendAtOnce is spend for a request of its own. It allocates nothing.
func (l *Limiter) spendAtOnce(q *Request) (Decision, bool) {
	r := l.tenure.Rules()
	if !r.Prefetches || r.Replaces || q.ID != "" || q.Receipt || q.Lists != nil {
		return Decision{}, false
	}
	var room [maxSpent]*rules.Applied
	applied := r.Append(room[:0], q.Domain, q.Descriptors)
	if !spendable(applied) || r.Stray(q.Domain, q.Descriptors, nil) != "" {
		return Decision{}, false
	}
	d, paid := l.spend(r, applied, q.Cost)
	if paid {
		o := l.outcome(d)
		for _, a := range applied {
			l.accountOne(a, q.Cost, d, o)
		}
	}
	return d, paid
}

// spendable reports whether chunks can admit a request with these limits. They cannot with a limit
// that is exact.
func spendable(applied []*rules.Applied) bool {
	if len(applied) == 0 || len(applied) > maxSpent {
		return false
	}
	for _, a := range applied {
		if a.Limit.Consistency != policy.Prefetch {
			return false
		}
	}
	return true
}

// spends reports whether chunks can admit the request: not one with an id or a receipt, or with a cost
// for each limit.
func (w *waiting) spends(receipt bool) bool {
	return w.commit && w.once == "" && !receipt && !w.apart() && spendable(w.applied)
}

// spend admits a request whose limits are spendable from the chunks that the node holds, if it
// holds enough of all its buckets.
func (l *Limiter) spend(r *rules.Rules, applied []*rules.Applied, cost quantity.Units) (Decision,
	bool) {
	if isClosed(l.config.Closed) || l.tenure.Stopped() != nil || r.Serves() != nil {
		return Decision{}, false
	}
	var taken [maxSpent]*held.Chunk
	generation, now := l.tenure.Generation(), l.elapsed()
	var d Decision
	for i, a := range applied {
		chunk, left, low := a.Held.Take(cost, generation, now)
		if chunk == nil {
			l.putBack(taken[:i], cost)
			return Decision{}, false
		}
		taken[i] = chunk
		if remaining := left + chunk.State.Free; i == 0 || remaining < d.Remaining {
			d = admitted(a, chunk, remaining, now)
		}
		if low {
			l.topUp(r, a)
		}
	}
	for _, a := range applied {
		if a.Limit.Name == d.Limit {
			d = l.describe(d, a)
		}
	}
	l.metrics.spentUnits.Add(float64(cost) * float64(len(applied)))
	return d, true
}

// maxSpent is the most limits that a request has which is admitted from chunks: all that may apply
// to one.
const maxSpent = algorithms.MaxLoad

// admitted returns the decision on a request that was admitted from a chunk.
func admitted(a *rules.Applied, c *held.Chunk, remaining quantity.Units, now time.Duration) Decision {
	return Decision{Allowed: true, Reason: WithinLimit, Limit: a.Limit.Name, Remaining: remaining,
		ResetAfter: microseconds(c.Reset(now)), Cell: c.State.Cell, At: c.At(now),
		Share: max(c.State.Share, 0), FromMemory: true}
}

// putBack undoes what was taken of chunks for a request.
func (l *Limiter) putBack(taken []*held.Chunk, cost quantity.Units) {
	for _, c := range taken {
		// Units of a chunk that ended in this moment stay charged.
		l.metrics.strandedUnits.Add(float64(c.PutBack(cost)))
	}
}

// topUpAll asks for chunks of all buckets of a request that chunks could have admitted, after the
// store decided it.
func (l *Limiter) topUpAll(w *waiting) {
	for _, a := range w.applied {
		l.topUp(w.rules, a)
	}
}

// topUp asks for a chunk of a bucket, if the node uses enough of it. It does not wait.
func (l *Limiter) topUp(r *rules.Rules, a *rules.Applied) {
	units := a.Held.Want(l.config.Nodes, l.elapsed())
	if units == 0 {
		return
	}
	w := wanted{r, a, units}
	switch {
	case !l.chunks.hold(r, a):
		a.Held.Filled(nil)
	case l.config.Stepped:
		l.fetch(context.Background(), w)
	default:
		select {
		case l.chunks.wanted <- w:
		default:
			a.Held.Filled(nil)
		}
	}
}

// fetchChunks asks for chunks that are wanted, until ctx ends.
func (l *Limiter) fetchChunks(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case w := <-l.chunks.wanted:
			l.fetch(ctx, w)
		}
	}
}

// fetch asks the store for a chunk, unless there is to be none any more.
func (l *Limiter) fetch(ctx context.Context, w wanted) {
	if !l.chunks.hold(w.rules, w.of) {
		w.of.Held.Filled(nil)
		return
	}
	deadline := l.deadline
	if l.config.Stepped {
		deadline = time.Hour // the wall clock does not measure a simulated store
	}
	asks := waiting{rules: w.rules, applied: []*rules.Applied{w.of}, cost: w.units, commit: true,
		chunk: true}.waits(deadline)
	said, err := l.ask(ctx, asks)
	if err != nil || said.err != nil || !said.decided.Answers[said.index].Admitted {
		w.of.Held.Filled(nil)
		return
	}
	l.metrics.prefetchedUnits.Add(float64(w.units))
	answer := answerOf([]waiting{asks}, 0, said.decided, said.of)
	if old := w.of.Held.Filled(&held.Grant{Units: w.units, Answer: answer}); old != nil {
		l.giveBack(ctx, []leftover{{w.of, old, old.End()}})
	}
}

// sweep gives back chunks that are over, until ctx ends.
func (l *Limiter) sweep(ctx context.Context) {
	repeat.Every(ctx, sweepEvery, func(time.Time) { l.ReturnChunks(ctx, false) })
}

// ReturnChunks gives back what is left of the chunks that are over, or with all of every chunk.
func (l *Limiter) ReturnChunks(ctx context.Context, all bool) {
	l.giveBack(ctx, l.chunks.over(l.tenure.Rules(), l.elapsed(), all))
}

// ReturnAll gives every chunk back, before the node ends. From then on the node holds none. It
// waits for chunks that it has asked for, until ctx ends, and not longer than for an answer of the
// store.
func (l *Limiter) ReturnAll(ctx context.Context) {
	l.chunks.end()
	for end := time.Now().Add(l.deadline + returnEvery); ; time.Sleep(returnEvery) {
		l.ReturnChunks(ctx, true)
		if l.chunks.none() || ctx.Err() != nil || time.Now().After(end) {
			return
		}
	}
}

// leftover is what was left of a chunk.
type leftover struct {
	of    *rules.Applied
	chunk *held.Chunk
	units quantity.Units
}

// giveBack gives units back to the store, in the cell and under the generation that they were
// charged to. It asks once: what the store does not take stays charged until its cell no longer
// counts.
func (l *Limiter) giveBack(ctx context.Context, all []leftover) {
	current := l.tenure.Rules()
	for piece := range slices.Chunk(all, maxReturned) {
		l.givePiece(ctx, current, piece)
	}
}

func (l *Limiter) givePiece(ctx context.Context, current *rules.Rules, all []leftover) {
	calls, of := make([]algorithms.Refund, 0, len(all)), make([]leftover, 0, len(all))
	for _, left := range all {
		b := current.Find(left.of.Bucket.ID)
		if left.units == 0 {
			continue
		}
		if b == nil || left.chunk.Generation != l.tenure.Generation() {
			l.metrics.strandedUnits.Add(float64(left.units))
			continue
		}
		target := current.Target(b, l.rights.Exists(b))
		calls, of = append(calls, algorithms.Refund{
			Fence: algorithms.Fence{Epoch: current.Epoch, Generation: left.chunk.Generation},
			Once:  store.OnceKey(store.ShardOf(target.Key), "none"),
			At:    left.chunk.Now, Cost: left.units,
			Charges: []algorithms.Charge{{Target: target, Cell: left.chunk.State.Cell}}}),
			append(of, left)
	}
	if len(calls) == 0 {
		return
	}
	for i, r := range l.store.Refunds(ctx, calls) {
		var back quantity.Units
		if r.Err == nil {
			back = r.Value.Charges[0].Units
			l.forgetDenials(current, of[i].of.Bucket.ID, r.Value.Now)
		} else {
			l.rights.Lose(ctx, of[i].of.Bucket, r.Err)
		}
		l.metrics.returnedUnits.Add(float64(back))
		l.metrics.strandedUnits.Add(float64(of[i].units - back))
	}
}
