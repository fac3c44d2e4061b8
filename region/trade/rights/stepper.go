package rights

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/quantity"
)

const (
	tickEvery    = exchange.Interval * time.Microsecond
	drainEvery   = 10 * time.Millisecond // decisions are reported to the machine at most this often
	eventsAtOnce = 256                   // heard before the clock is looked at again
)

// Stepper steps the exchange machine of a node. It is not safe for concurrent use, but its Engine is.
type Stepper struct {
	*Engine
	machine  *exchange.Machine
	heard    int                     // how many events were looked for
	apart    map[string]bool         // regions whose store's clock is too far from ours
	refused  int64                   // generations refused, as of the last step
	warned   time.Time               // when a refused generation was last logged
	warnedOf time.Time               // when a later generation of our region was last logged
	said     []exchange.Acknowledged // what this region said of its limits documents at the last tick
}

// Stepper returns what steps the machine, which knows nothing yet. Run has one. Who steps the machine
// by hand calls Stepper once, in place of Run.
func (e *Engine) Stepper() *Stepper {
	c := e.config
	return &Stepper{Engine: e, machine: exchange.New(c.Region, c.Node, c.Options), apart: map[string]bool{}}
}

// Run steps the machine until ctx ends, and waits for the effects under way. It is called once.
func (e *Engine) Run(ctx context.Context) {
	defer e.work.Wait()
	s := e.Stepper()
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	rest := time.NewTimer(0)
	defer rest.Stop()
	drain := e.drain
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.events.more:
			s.hearSome(ctx)
		case <-drain:
			began := time.Now()
			s.report(ctx)
			drain = nil
			// Reports take at most half of the machine's time.
			rest.Reset(max(drainEvery, time.Since(began)))
		case <-rest.C:
			drain = e.drain
		case <-tick.C:
			s.report(ctx)
			s.step(ctx, exchange.Tick{Jitter: quantity.PPM(allocator.PPM*8/10 +
				rand.Int64N(allocator.PPM*4/10))})
		}
	}
}

// hearSome has the machine hear up to eventsAtOnce of the events that wait.
func (s *Stepper) hearSome(ctx context.Context) {
	for range eventsAtOnce {
		s.heard++
		event, ok := s.events.next(s.heard)
		if !ok {
			return
		}
		s.step(ctx, event)
	}
	s.events.wake() // Run hears the rest after it has looked at the clock
}

// Hear steps the machine at now, microseconds of the machine's time, and takes over what the
// machine then knows.
func (s *Stepper) Hear(now quantity.NodeTime, event exchange.Event) exchange.Effects {
	if tick, ok := event.(exchange.Tick); ok {
		tick.Clock = quantity.StoreTime(s.config.Now().UnixMicro())
		tick.News = s.hasNews()
		event = tick
	}
	out := s.machine.Step(now, event)
	s.hearDocuments(out)
	s.tellDocuments(out)
	s.mu.Lock()
	s.stats = s.machine.Stats()
	s.storeAhead, s.storeTold = s.machine.StoreClock()
	s.reliefs.take(now, out.Reliefs)
	s.mu.Unlock()
	s.watchGenerations(event)
	if _, ticked := event.(exchange.Tick); ticked {
		s.gone.name(s.machine.Named())
		moved, allotments, waiting := s.machine.MovedByLimit(), allotted(out.Allotments), s.machine.Recovering()
		s.mu.Lock()
		s.movedBy, s.allotments, s.waiting = moved, allotments, waiting
		s.mu.Unlock()
	}
	switch event.(type) {
	// Ages depend on these only: on time, on answers, and on who the peers are.
	case exchange.Tick, exchange.Answered, exchange.TenureChanged:
		ages := s.machine.Ages(now)
		s.mu.Lock()
		s.ages = ages
		s.mu.Unlock()
		s.setDegraded(ages)
		s.watchClocks(ages)
	}
	return out
}

// step steps the machine and starts its effects.
func (s *Stepper) step(ctx context.Context, event exchange.Event) {
	out := s.Hear(s.now(), event)
	for _, settled := range out.Settled {
		s.Settle(settled)
	}
	if len(out.Lend) > 0 {
		s.work.Go(func() { s.Lend(ctx, out.Lend) })
	}
	for _, r := range out.Record {
		s.work.Go(func() { s.Record(ctx, r) })
	}
	for _, a := range out.Replies {
		s.replies.hand(a.ID, a.Reply)
		s.fails(AfterReply)
	}
	for _, c := range out.Calls {
		s.work.Go(func() { s.call(ctx, c) })
	}
	if len(out.Credits) > 0 {
		s.work.Go(func() { s.Credit(ctx, out.Credits) })
	}
	for _, r := range out.Recalls {
		s.work.Go(func() { s.recall(ctx, r) })
	}
	for _, c := range out.Consults {
		s.work.Go(func() { s.Consult(ctx, c) })
	}
	for _, t := range out.Testify {
		s.testimonies.hand(t.ID, t.Testimonies)
	}
	if len(out.Restores) > 0 {
		s.work.Go(func() { s.Restore(ctx, out.Restores) })
	}
	for _, h := range out.Hints {
		s.broadcast(h)
	}
}
