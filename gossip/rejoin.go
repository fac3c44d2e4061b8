package gossip

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxExchanges bounds the exchanges that this node has begun and not ended. A call into a cut
	// hangs for a stream timeout, so calls of successive rounds add up.
	maxExchanges = 64
	// greetFanout is how many newcomers a node greets in one round.
	greetFanout = 3
	// greetShare is how many members greet one newcomer, on average.
	greetShare = 8
	// greetWithin is the time over which these greetings are spread.
	greetWithin = time.Second
	// answerHolds is how long an address that answered without being a member's is not called
	// again: that of a load balancer, or another address of this node.
	answerHolds = 30 * time.Second
)

// caller exchanges whole states with members that are missing, for ever, and with members that have
// just appeared.
//
// The first heals cuts that memberlist does not heal. The second makes states that were written on
// both sides of a cut meet soon: membership spreads by packets within a second, but the state would
// wait for the push/pull interval.
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

	first firstRound

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
		first:    firstRound{over: make(chan struct{})},
	}
}

// run calls and greets until ctx ends, the first time at once. It returns when the last exchange
// has ended.
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
			c.first.begun()
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

// jitter spreads an interval by +-20 %, so that nodes that lost each other at the same moment do
// not all call at the same moment.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}

// callMissing calls every seed, and those remembered peers that are due, unless they are alive. It
// waits for none of them.
func (c *caller) callMissing(ctx context.Context) {
	for _, seed := range c.seeds {
		c.callSeed(ctx, seed)
	}
	for _, addr := range c.roster.missing() {
		c.callAddr(addr)
	}
}

// callSeed looks up a seed and calls the addresses it finds.
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
	ended := c.first.calls()
	c.tasks.Go(func() {
		defer ended()
		ctx, cancel := context.WithTimeout(ctx, c.timeout)
		defer cancel()
		ips, err := c.resolve(ctx, host)
		c.lookedUp(seed, err)
		for _, ip := range ips {
			c.callAddr(netip.AddrPortFrom(ip.Unmap(), port))
		}
	})
}

// lookedUp notes the result of a lookup. The first failure in a row is logged as a warning, because
// the name may be misspelt.
func (c *caller) lookedUp(seed string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.lookups, seed)
	if err != nil && !c.unknown[seed] {
		c.log.Warn("gossip: cannot look up a seed; will go on trying", "seed", seed, "err", err)
	}
	c.unknown[seed] = err != nil
}

// callAddr calls an address, unless it is this node's own or a live member's, or has answered
// lately without being a member's.
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

// greet exchanges whole states with some of the members that have just appeared. In a large cluster
// only some nodes do it: each of k newcomers among n members is greeted by about greetShare
// members, however large n is.
func (c *caller) greet() {
	newcomers, members := c.roster.takeNewcomers(), c.roster.count()
	if rand.IntN(members) >= greetShare*len(newcomers) {
		return
	}
	rand.Shuffle(len(newcomers),
		func(i, j int) { newcomers[i], newcomers[j] = newcomers[j], newcomers[i] })
	for _, addr := range newcomers[:min(greetFanout, len(newcomers))] {
		c.exchange(addr)
	}
}

// exchange begins to exchange whole states with an address, unless an exchange with it is under way
// or too many are.
func (c *caller) exchange(addr netip.AddrPort) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[addr] || len(c.calls) >= maxExchanges {
		return
	}
	c.calls[addr] = true
	ended := c.first.calls()
	c.tasks.Go(func() {
		defer ended()
		c.attempted.Add(1)
		err := c.join(addr.String())
		c.ended(addr, err)
	})
}

// ended notes the result of an exchange.
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
	maps.DeleteFunc(c.answered,
		func(_ netip.AddrPort, at time.Time) bool { return time.Since(at) >= answerHolds })
	c.roster.greeted(addr)
}
