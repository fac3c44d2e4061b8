package rights

import (
	"context"
	"math"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/store"
)

// recall asks a peer region a question, or the other nodes of our own.
func (e *Engine) recall(ctx context.Context, r exchange.Recall) {
	limited, cancel := context.WithTimeout(ctx, quantity.Duration(r.Timeout))
	defer cancel()
	if r.All || r.Region == e.config.Region {
		answers := 0
		asked := e.config.Peers.RecallAll(limited, r.Region, r.Question, func(t exchange.Testimonies) {
			answers++
			e.deliver(exchange.Testified{Testimonies: t})
		})
		e.deliver(exchange.Gathered{Question: r.Question, Region: r.Region, Whole: 0 < asked && asked == answers})
		return
	}
	all, err := e.config.Peers.Recall(limited, r.Region, r.Question)
	if err != nil {
		e.config.Log.Debug("peer region does not tell what it remembers", "region", r.Region, "err",
			err)
		return // the machine asks again
	}
	e.deliver(exchange.Testified{Testimonies: all})
}

// Consult answers a question: a peer's from the store, our own region's from this node's journal
// and memory.
func (e *Engine) Consult(ctx context.Context, c exchange.Consult) {
	var all []exchange.Testimony
	var copied []exchange.Copied
	if c.Peer != "" {
		copied = e.copiedElsewhere(c.Peer) // before the uses that are part of it are read
		all = e.recollect(ctx, c)
		if err := e.addUses(c.Peer, all); err != nil {
			e.config.Log.Debug("the journal cannot be read: what another region used counts as not known", "err", err)
			copied = nil
		}
	} else {
		copied = e.copied(c.Question.Generation) // before the uses that are part of them are read
		for i, d := range c.Question.Buckets {
			t, err := e.remember(d, c.Buckets[i], c.Question.Generation)
			if err != nil {
				e.config.Log.Error("the journal cannot be read: what this node lent counts as not known", "err", err)
				copied = nil // they are in the journal, too
			}
			all = append(all, t)
		}
	}
	e.deliver(exchange.Consulted{Consult: c, All: all, Copies: copied})
}

// remember returns what this node's journal and memory hold of a bucket. generation is the store's
// generation under which the question is asked. If the window is short and this node surely did not
// use the bucket before, remember does not look into the journal. If the journal cannot be read, it
// returns an error and a testimony that still has what the node itself saw, and says that the
// journal covers no time.
func (e *Engine) remember(d exchange.Doubt, b *exchange.Bucket,
	generation uint64) (exchange.Testimony, error) {
	unused := quantity.StoreTime(math.MaxInt64) // since when the node surely did not use it
	if b != nil && !e.seen.usedBefore(d.Bucket, generation) {
		unused = quantity.StoreTime(e.seen.since.Load())
		counts := b.Terms(e.config.Region).CountsSince(b.Cells().Opens(d.From))
		if !b.Recovered && unused <= min(counts, b.Cells().Opens(d.From-1)) {
			return exchange.Testimony{Bucket: d.Bucket, WholeSince: unused, UseSince: unused}, nil
		}
	}
	t := exchange.Testimony{Bucket: d.Bucket, WholeSince: unused, UseSince: unused, Use: e.seen.use(d.Bucket),
		Read: e.gone.readBy(e.config.Node)}
	if t.Use != (algorithms.Use{}) { // what it saw includes all that was used since then
		t.UseSince = quantity.StoreTime(e.seen.since.Load())
	}
	checkpoints, err := e.config.Journal.Checkpoints(d.Bucket)
	if err != nil {
		return t, err
	}
	for _, c := range checkpoints {
		t.Use = newest(t.Use, c)
	}
	rows, err := e.config.Journal.RowsOf(d.Bucket, d.From, d.To)
	if err != nil {
		return t, err
	}
	for _, r := range rows {
		t.Rows = append(t.Rows, algorithms.RememberedRow{Peer: r.Peer, Cell: r.Cell, Lent: r.Lent,
			Returned: r.Returned})
	}
	if b == nil || b.Recovered || t.Read == 0 { // of other buckets nothing is read
		t.WholeSince = min(t.WholeSince, e.config.Journal.WholeSince())
	}
	if b == nil || b.Recovered { // of other buckets no use is written
		t.UseSince = min(t.UseSince, e.config.Journal.WholeSince())
	}
	return t, nil
}

// newest returns the later of a use and a checkpoint.
func newest(use algorithms.Use, c journal.Checkpoint) algorithms.Use {
	if c.Cell > use.Cell || c.Cell == use.Cell && c.At > use.At {
		return algorithms.Use{Cell: c.Cell, Units: c.Used, At: c.At}
	}
	return use
}

// recollect returns what this region's store has heard from a peer about its buckets. It makes the
// store fence the peer's older generations.
func (e *Engine) recollect(ctx context.Context, c exchange.Consult) []exchange.Testimony {
	current := e.config.Tenure.Rules()
	all := make([]exchange.Testimony, len(c.Question.Buckets))
	var calls []algorithms.Recall
	var places []int
	for i, d := range c.Question.Buckets {
		all[i] = exchange.Testimony{Bucket: d.Bucket, Refused: true}
		if b := c.Buckets[i]; b != nil {
			calls = append(calls, algorithms.Recall{Fence: algorithms.Fence{Epoch: b.Epoch},
				Target: current.Target(b, e.seen.known(b.ID)),
				Peer:   c.Peer, PeerGeneration: c.Question.Generation})
			places = append(places, i)
		}
	}
	inPieces(ctx, e.moves, calls, e.config.Store.Recall,
		func(i int, res store.Result[algorithms.Recalled]) {
			if res.Err == nil {
				e.tell(&all[places[i]], res.Value)
			}
		})
	return all
}

// Restore makes the store restore buckets.
func (e *Engine) Restore(ctx context.Context, all []exchange.Restore) {
	calls := make([]algorithms.Restore, len(all))
	for i, r := range all {
		calls[i] = e.restoring(r)
	}
	inPieces(ctx, e.moves, calls, e.config.Store.Restore,
		func(i int, res store.Result[algorithms.Restored]) {
			// Otherwise another node had restored the bucket, and this call did nothing.
			if res.Err == nil && res.Value.ExistsUntil > 0 {
				e.seen.note(all[i].Bucket, res.Value.State, res.Value.Now)
			}
			result := told(res, algorithms.Restored{Head: unanswered})
			e.deliver(exchange.Restored{Restore: all[i], Result: result})
		})
}

// restoring returns the script call that restores a bucket.
func (e *Engine) restoring(r exchange.Restore) algorithms.Restore {
	return algorithms.Restore{Fence: algorithms.Fence{Generation: r.Generation, Epoch: r.Bucket.Epoch},
		Target: e.config.Tenure.Rules().Target(r.Bucket, 0), LostAt: r.LostAt, Known: r.Known}
}

// tell fills in what the store has heard about a bucket.
func (e *Engine) tell(t *exchange.Testimony, heard algorithms.Recalled) {
	t.Refused, t.Now, t.LostAt = false, heard.Now, heard.LostAt
	t.Rows = heard.By(e.config.Region)
}
