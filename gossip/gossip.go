package gossip

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// leaveLimit bounds how long Leave waits for its goodbye to be sent.
const leaveLimit = 3 * time.Second

// metaPatience is how long SetMeta lets memberlist wait for its broadcast: it need not.
const metaPatience = time.Millisecond

// Gossip is one node of a cluster. Its methods are safe for concurrent use.
type Gossip struct {
	cfg       Config
	transport *transport
	outbox    *outbox
	roster    *roster
	delegate  *delegate
	list      *memberlist.Memberlist
	keys      *memberlist.Keyring // nil: plain text
	caller    *caller

	stopCalls context.CancelFunc // ends the rejoin loop
	stop      context.CancelFunc // ends everything else
	tasks     sync.WaitGroup

	mu      sync.Mutex
	closed  chan struct{} // not nil once Close was called; closed at its end
	left    chan struct{} // not nil once Leave was called; closed at its end
	leftErr error         // result of Leave; set before left is closed
}

// Stats counts what a node has done since its start.
type Stats struct {
	PacketBytesIn, PacketBytesOut uint64
	StreamBytesIn, StreamBytesOut uint64
	StreamsRefused                uint64 // because too many were open
	BroadcastsQueued              int    // changes that wait to be sent
	BroadcastsDropped             uint64 // changes that did not fit the queue, or waited for long
	Rejected                      uint64 // messages and states that could not be used
	Compressed                    uint64 // compressed frames, refused before they are inflated
	Malformed                     uint64 // other frames that no node sends
	TooLarge                      uint64 // packets, streams and states beyond their bounds
	Unsealed                      uint64 // frames that no key opened, or with a label
	Crowded                       uint64 // streams closed for want of room for their bytes
	// Nodes that Admit or MaxGroup kept out, counted each time they were named.
	MembersRefused   uint64
	RejoinsAttempted uint64 // exchanges begun with missing and with new members
	RejoinsSucceeded uint64
}

// Start joins a cluster. It returns at once: seeds and remembered peers are called in the
// background, for ever. It fails if the configuration is invalid or memberlist cannot start.
// Packets and Streams are then closed.
func Start(cfg Config) (*Gossip, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		cfg.closeSockets()
		return nil, err
	}
	g := &Gossip{cfg: cfg, roster: newRoster(cfg)}
	g.outbox = newOutbox(cfg.Timing.RetransmitMult, g.roster.count)
	g.delegate = &delegate{state: cfg.State, outbox: g.outbox, roster: g.roster,
		log: cfg.Logger, panics: cfg.Recovered}
	g.delegate.meta.Store(&cfg.Meta)
	g.recall(cfg.Remembered)
	var err error
	if g.keys, err = newRing(cfg.Keys); err != nil {
		cfg.closeSockets()
		return nil, fmt.Errorf("gossip: %w", err)
	}

	g.transport = newTransport(cfg, g.keys)
	list, err := memberlist.Create(libraryConfig(cfg, g.keys, g.transport, g.delegate, g.roster))
	if err != nil {
		g.transport.Shutdown()
		return nil, fmt.Errorf("gossip: cannot start node %q at %v: %w", cfg.Name, cfg.Advertise,
			err)
	}
	g.list = list
	g.caller = newCaller(cfg, g.roster, func(addr string) error {
		_, err := list.Join([]string{addr})
		return err
	})

	ctx, stop := context.WithCancel(context.Background())
	calls, stopCalls := context.WithCancel(ctx)
	g.stop, g.stopCalls = stop, stopCalls
	g.tasks.Go(func() { g.caller.run(calls) })
	if cfg.OnChange != nil {
		g.tasks.Go(func() { g.tellChanges(ctx) })
	}
	return g, nil
}

// closeSockets closes the sockets that Start was given.
func (c Config) closeSockets() {
	if c.Packets != nil {
		c.Packets.Close()
	}
	if c.Streams != nil {
		c.Streams.Close()
	}
}

// recall takes over the peers of an earlier run. It ignores an address that cannot be parsed, so
// that the node starts all the same.
func (g *Gossip) recall(peers []string) {
	for _, p := range peers {
		addr, err := netip.ParseAddrPort(p)
		if err != nil {
			g.cfg.Logger.Warn("gossip: remembered peer ignored: it is not ip:port", "peer", p,
				"err", err)
			continue
		}
		if addr = unmap(addr); addr != g.cfg.Advertise {
			g.roster.recall(addr)
		}
	}
}

// tellChanges calls OnChange after changes, outside all locks.
func (g *Gossip) tellChanges(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.roster.changed:
			g.tell(g.roster.list())
		}
	}
}

func (g *Gossip) tell(members []Member) {
	defer g.cfg.Recovered.recover()
	g.cfg.OnChange(members)
}

// Broadcast spreads a small change: the other nodes pass b to their State.Merge. The change
// replaces an earlier one of the same key that still waits to be sent. The key has 1 to 255 bytes.
// Broadcast does not wait, and copies b.
//
// Broadcast is for speed only, so the change must already be part of the whole state. A change
// spreads with the whole state instead if it is lost, if the queue is full and drops it, or if
// Broadcast returns ErrTooLarge.
func (g *Gossip) Broadcast(key string, b []byte) error {
	encoded, err := encodeChange(key, b)
	if err != nil {
		return err
	}
	g.outbox.put(key, encoded)
	return nil
}

// SetMeta replaces what the other nodes are told about this one, at most 512 bytes. They hear of it
// within a few gossip intervals. SetMeta does not wait for that.
func (g *Gossip) SetMeta(meta []byte) error {
	if len(meta) > maxMeta {
		return fmt.Errorf("gossip: meta data has %d bytes, at most %d fit a packet", len(meta),
			maxMeta)
	}
	meta = bytes.Clone(meta)
	g.delegate.meta.Store(&meta)
	// Its only other failure is that the wait for its broadcast has timed out, which is no failure.
	_ = g.list.UpdateNode(metaPatience)
	return nil
}

// FirstCalls waits until each seed and remembered peer was called once, or ctx ends. It says
// whether there are any besides this node.
func (g *Gossip) FirstCalls(ctx context.Context) (any bool) { return g.caller.firstRound(ctx) }

// Members returns the nodes that are alive in this node's view, itself included, sorted by name.
func (g *Gossip) Members() []Member { return g.roster.list() }

// Namesake returns the node that was last met under this node's name at another address. It may be
// this node as it was before it moved.
func (g *Gossip) Namesake() (m Member, met bool) {
	g.roster.mu.Lock()
	defer g.roster.mu.Unlock()
	if g.roster.namesake == nil {
		return Member{}, false
	}
	return *g.roster.namesake, true
}

// Remembered returns the addresses of members, at most 256, as ip:port. Give them as
// Config.Remembered after a restart. A member that said goodbye is not among them.
func (g *Gossip) Remembered() []string { return g.roster.remembered() }

// Stats returns the counters.
func (g *Gossip) Stats() Stats {
	queued, dropped := g.outbox.counts()
	return Stats{
		PacketBytesIn:     g.transport.packetsIn.Load(),
		PacketBytesOut:    g.transport.packetsOut.Load(),
		StreamBytesIn:     g.transport.streamsIn.Load(),
		StreamBytesOut:    g.transport.streamsOut.Load(),
		StreamsRefused:    g.transport.refused.Load(),
		BroadcastsQueued:  queued,
		BroadcastsDropped: dropped,
		Rejected:          g.delegate.rejected.Load(),
		Compressed:        g.transport.compressed.Load(),
		Malformed:         g.transport.malformed.Load(),
		TooLarge:          g.transport.tooLarge.Load(),
		Unsealed:          g.transport.unsealed.Load(),
		Crowded:           g.transport.crowded.Load(),
		MembersRefused:    g.roster.refused(),
		RejoinsAttempted:  g.caller.attempted.Load(),
		RejoinsSucceeded:  g.caller.succeeded.Load(),
	}
}

// Leave says goodbye, so that the others need not find out that this node is gone, and stops
// calling missing members. It returns when the goodbye was sent, when ctx ends, or after 3 s at the
// latest. The node must still be closed. Further calls wait for the same goodbye. After Close it
// returns net.ErrClosed.
func (g *Gossip) Leave(ctx context.Context) error {
	g.mu.Lock()
	if g.left == nil {
		if g.closed != nil {
			g.mu.Unlock()
			return net.ErrClosed
		}
		done := make(chan struct{})
		g.left = done
		g.stopCalls()
		limit := leaveLimit
		if until, ok := ctx.Deadline(); ok {
			limit = max(1, min(limit, time.Until(until)))
		}
		g.tasks.Go(func() {
			defer close(done)
			g.leftErr = g.farewell(limit)
		})
	}
	left := g.left
	g.mu.Unlock()
	select {
	case <-left:
		return g.leftErr
	case <-ctx.Done():
		return fmt.Errorf("gossip: node %q may not have been heard leaving: %w", g.cfg.Name,
			ctx.Err())
	}
}

// farewell tells each member directly that this node leaves, and then has memberlist spread that it
// is gone. The first step is best effort: without it the other nodes log "failed" instead of
// "left".
func (g *Gossip) farewell(limit time.Duration) error {
	for _, m := range g.roster.leave() {
		to := memberlist.Address{Addr: m.Addr.String(), Name: m.Name}
		_ = g.list.SendToAddress(to, encodeGoodbye(g.cfg.Name))
	}
	// If all others leave meanwhile, nobody is left to send it to.
	if err := g.list.Leave(limit); err != nil && len(g.roster.others()) > 0 {
		return fmt.Errorf("gossip: node %q may not have been heard leaving: %w", g.cfg.Name, err)
	}
	return nil
}

// Close stops the node and closes its sockets at once. The other nodes find out by themselves.
// Close then waits until no goroutine of the node is left: for a Leave under way, and for calls of
// State and OnChange under way, which are not called again. It also waits for a probe that
// memberlist has sent, up to one Timing.ProbeInterval, or two if the node has had trouble. It is
// idempotent.
func (g *Gossip) Close() error {
	g.mu.Lock()
	if g.closed != nil {
		g.mu.Unlock()
		<-g.closed
		return nil
	}
	g.closed = make(chan struct{})
	defer close(g.closed)
	left := g.left
	g.mu.Unlock()
	if left != nil {
		<-left // memberlist must not be told to leave once it is shut down
	}
	g.stop()
	g.roster.close()
	g.delegate.close()
	err := g.list.Shutdown() // and with it the transport
	g.tasks.Wait()
	g.waitForProbe()
	return err
}

// waitForProbe waits until a probe that was under way at the shutdown has timed out. Every probe,
// also one made for another node, begins with a packet and ends within a probe interval times the
// health score plus one. The score does not fall while a probe is under way.
func (g *Gossip) waitForProbe() {
	longest := g.cfg.Timing.ProbeInterval * time.Duration(g.list.GetHealthScore()+1)
	time.Sleep(time.Until(g.transport.quietSince().Add(longest)))
}
