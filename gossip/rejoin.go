package gossip

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxExchanges bounds the exchanges this node has begun and not ended. A
	// call into a cut hangs for a stream timeout, so calls of successive
	// rounds add up.
	maxExchanges = 64
	// greetFanout is how many newcomers a node greets at once.
	greetFanout = 3
	// greetShare is how many members greet one newcomer, on average.
	greetShare = 8
	// greetWithin spreads those greetings.
	greetWithin = time.Second
	// answerHolds is how long an address that answered, but is no member's, is
	// left in peace: that of a balancer, or another one of this very node.
	answerHolds = 30 * time.Second
)

// caller exchanges whole states with those who are missing, for ever, and with
// those who have just appeared.
//
// The first heals what memberlist does not. The second makes state that was
// written on both sides of a cut meet soon: membership spreads by packets
// within a second, state would wait for the push/pull interval.
type caller struct {
	self    netip.AddrPort
	seeds   []string
	every   time.Duration
	timeout time.Duration // of a lookup
	resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	join    func(addr string) error // exchanges whole states; bounded in time
	roster  *roster
	log     *slog.Logger

	attempted, succeeded atomic.Uint64

	tasks sync.WaitGroup

	mu       sync.Mutex
	lookups  map[string]bool         // seeds being looked up
	unknown  map[string]bool         // seeds whose last lookup failed
	calls    map[netip.AddrPort]bool // exchanges under way
	answered map[netip.AddrPort]time.Time
}

func newCaller(c Config, r *roster, join func(addr string) error) *caller {
	return &caller{
		self: c.Advertise, seeds: c.Seeds, every: c.RejoinEvery, timeout: c.Timing.StreamTimeout,
		resolve: c.Resolve, join: join, roster: r, log: c.Logger,
		lookups:  make(map[string]bool),
		unknown:  make(map[string]bool),
		calls:    make(map[netip.AddrPort]bool),
		answered: make(map[netip.AddrPort]time.Time),
	}
}

// run calls and greets until ctx ends, the first time at once, and returns
// when the last exchange has ended.
func (c *caller) run(ctx context.Context) {
	defer c.tasks.Wait()
	round := time.NewTimer(0)
	defer round.Stop()
	var greeting <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-round.C:
			c.callMissing(ctx)
			round.Reset(jitter(c.every))
		case <-c.roster.arrived:
			if greeting == nil {
				greeting = time.After(rand.N(greetWithin))
			}
		case <-greeting:
			greeting = nil
			c.greet()
		}
	}
}

// jitter spreads an interval by +-20 %, so that nodes that lost each other at
// one moment do not all call at one moment.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}

// callMissing is one round: every seed and remembered peer that is not alive.
// It waits for none of them.
func (c *caller) callMissing(ctx context.Context) {
	for _, seed := range c.seeds {
		c.callSeed(ctx, seed)
	}
	for _, addr := range c.roster.missing() {
		c.callAddr(addr)
	}
}

// callSeed looks a seed up and calls what it finds.
func (c *caller) callSeed(ctx context.Context, seed string) {
	host, port, err := splitSeed(seed)
	if err != nil {
		return // refused by Start
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		c.callAddr(netip.AddrPortFrom(ip.Unmap(), port))
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lookups[seed] {
		return
	}
	c.lookups[seed] = true
	c.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, c.timeout)
		defer cancel()
		ips, err := c.resolve(ctx, host)
		c.lookedUp(seed, err)
		for _, ip := range ips {
			c.callAddr(netip.AddrPortFrom(ip.Unmap(), port))
		}
	})
}

// lookedUp notes the outcome of a lookup. The first failure of a row is worth
// a warning, as it may be a misspelt name.
func (c *caller) lookedUp(seed string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.lookups, seed)
	if err != nil && !c.unknown[seed] {
		c.log.Warn("gossip: cannot look up a seed; will go on trying", "seed", seed, "err", err)
	}
	c.unknown[seed] = err != nil
}

// callAddr calls an address unless that is pointless.
func (c *caller) callAddr(addr netip.AddrPort) {
	if addr == c.self || c.roster.isAlive(addr) {
		return
	}
	c.mu.Lock()
	at, ok := c.answered[addr]
	c.mu.Unlock()
	if ok && time.Since(at) < answerHolds && !c.roster.wasMember(addr) {
		return
	}
	c.exchange(addr)
}

// greet exchanges whole states with some of those who have just appeared. In a
// large cluster only some nodes do it: of k newcomers among n members each is
// greeted by about greetShare members, however large n is.
func (c *caller) greet() {
	newcomers, members := c.roster.takeNewcomers(), c.roster.count()
	if rand.IntN(members) >= greetShare*len(newcomers) {
		return
	}
	rand.Shuffle(len(newcomers), func(i, j int) { newcomers[i], newcomers[j] = newcomers[j], newcomers[i] })
	for _, addr := range newcomers[:min(greetFanout, len(newcomers))] {
		c.exchange(addr)
	}
}

// exchange begins to exchange whole states with an address, unless that is
// under way already.
func (c *caller) exchange(addr netip.AddrPort) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[addr] || len(c.calls) >= maxExchanges {
		return
	}
	c.calls[addr] = true
	c.tasks.Go(func() {
		c.attempted.Add(1)
		err := c.join(addr.String())
		c.ended(addr, err)
	})
}

// ended notes the outcome of an exchange.
func (c *caller) ended(addr netip.AddrPort, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, addr)
	if err != nil {
		delete(c.answered, addr)
		c.log.Debug("gossip: called in vain", "addr", addr, "err", err)
		return
	}
	c.succeeded.Add(1)
	c.answered[addr] = time.Now()
	for a, at := range c.answered {
		if time.Since(at) >= answerHolds {
			delete(c.answered, a)
		}
	}
	c.roster.greeted(addr)
}
