package serving

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/cmd/quotad/serve/nodeconfig"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/base/link"
	"github.com/quotad/quotad/region/front/tracing"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/trade/rights"
)

// parts are the opened parts of a node that has not started yet.
type parts struct {
	config     region.Config
	sockets    *sockets
	doors      doors
	protection *protection
	embedded   *servers.Server // nil: the Redis is elsewhere
	journal    string          // path of the file
	gate       *link.Gate      // nil: the node makes no cuts
	tracer     *tracing.Tracer // nil: nothing is traced
}

const (
	// dialTimeout bounds connecting to other nodes.
	dialTimeout = 5 * time.Second
	// embeddedTimeout bounds a round trip to the embedded Redis, which is slow on a busy machine.
	embeddedTimeout = 2 * time.Second
)

// assemble opens everything that a node needs. If something fails it closes what it opened.
func assemble(ctx context.Context, c *nodeconfig.Config, d *policy.Document, stderr io.Writer,
	log *slog.Logger) (_ *parts, err error) {
	p := &parts{journal: filepath.Join(c.DataDir, "journal.db"), doors: newDoors(c.Limits)}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	p.config = region.Config{Region: c.Region, Node: c.Node, Nodes: c.Nodes, Policy: d,
		Bootstrap: c.Bootstrap != 0, Alone: c.Bootstrap == nodeconfig.BootstrapAlone, TrustClock: c.TrustClock,
		ForgetStoreTime: c.ForgetStoreTime,
		Wait:            c.Wait, Memory: rights.Memory{Buckets: c.Remember}, Seeds: c.Seeds, GossipKeys: c.GossipKeys,
		Unproven: c.Unproven(),
		Dial:     (&net.Dialer{Timeout: dialTimeout}).DialContext, Log: log}
	if p.config.PeerTLS, err = LoadPeerTLS(c, log); err != nil {
		return nil, err
	}
	if p.protection, err = loadProtection(c, log); err != nil {
		return nil, err
	}
	redisTrust, err := loadRedisTLS(c)
	if err != nil {
		return nil, err
	}
	if p.tracer, err = openTracer(c, log); err != nil {
		return nil, err
	}
	if p.config.Failpoint, err = failpoint(c); err != nil {
		return nil, err
	}
	if p.sockets, err = openSockets(c); err != nil {
		return nil, err
	}
	p.config.PeerListener, p.config.Streams, p.config.Packets = p.sockets.peer, p.sockets.gossip,
		p.sockets.packets
	at, err := lookUpAdvertised(ctx, c, listening(p.sockets.peer), listening(p.sockets.gossip))
	if err != nil {
		return nil, err
	}
	p.config.PeerAdvertise, p.config.Advertise = at.peer, at.gossip
	if c.Chaos {
		p.putGate(c)
	}
	p.config.PeerListener = p.doors.peer.Listener(p.config.PeerListener)
	j, err := journal.Open(p.journal, journal.Options{Region: c.Region, Node: c.Node})
	if err != nil {
		return nil, err
	}
	p.config.Journal = j
	// It comes after the journal, which makes the folder and lets one process have it.
	if err = p.protection.openAudit(c, stderr, log); err != nil {
		return nil, err
	}
	p.config.Adopted = p.protection.adopted
	if err = p.connect(ctx, c, redisTrust); err != nil {
		return nil, err
	}
	return p, nil
}

// putGate puts a gate between the node and all others. The gate tells nodes apart by address. So
// calls leave from the address that this node advertises, if it listens there. If both are on
// loopback, where a relay may be advertised for the node, calls leave from the address on which it
// listens.
func (p *parts) putGate(c *nodeconfig.Config) {
	p.gate = link.NewGate()
	dialer := net.Dialer{Timeout: dialTimeout}
	if own, known := c.Listen.Gossip.Addr(), p.config.Advertise.Addr(); own == known ||
		own.IsLoopback() && known.IsLoopback() {
		dialer.LocalAddr = &net.TCPAddr{IP: own.AsSlice()}
	}
	p.config.Dial = p.gate.Dialer(dialer)
	p.config.PeerListener, p.config.Streams = p.gate.Listener(p.sockets.peer),
		p.gate.Listener(p.sockets.gossip)
	p.config.Packets = p.gate.PacketConn(p.sockets.packets)
}

// connect prepares the store, and starts the Redis behind it if it is embedded.
func (p *parts) connect(ctx context.Context, c *nodeconfig.Config, trust *tls.Config) (err error) {
	options := store.Options{URL: c.Redis.URL, TLS: trust, Timeout: c.Redis.Timeout}
	if c.Redis.Embedded {
		if p.embedded, err = servers.StartEmbedded(ctx); err != nil {
			return fmt.Errorf("%w; set redis.url to use a Redis that runs already", err)
		}
		options = store.Options{URL: p.embedded.URL, Timeout: max(c.Redis.Timeout, embeddedTimeout),
			Now: p.embedded.Now}
	}
	s, err := store.Connect(options)
	if err != nil {
		return err
	}
	p.config.Store = s
	return nil
}

// close closes everything that is open. After the node was started and closed, that is only the
// embedded Redis, and closing the others again does nothing.
func (p *parts) close() {
	if p.gate != nil {
		p.gate.Heal() // releases what was closed during a cut
	}
	if p.sockets != nil {
		p.sockets.close()
	}
	if p.config.Journal != nil {
		_ = p.config.Journal.Close()
	}
	if p.config.Store != nil {
		_ = p.config.Store.Close()
	}
	if p.protection != nil {
		_ = p.protection.audit.Close()
	}
	discardTraces(p.tracer)
	if p.embedded != nil {
		_ = p.embedded.Close()
	}
}
