package door

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Limits bound the open connections of one door.
type Limits struct {
	Connections int // in total
	PerAddress  int // from one IPv4 address or one IPv6 network of 64 bits; behind a proxy, all callers
}

// The reasons for which a door refuses or ends a connection, as in its metrics.
const (
	tooMany           = "connections"
	tooManyOfAddress  = "connections_of_address"
	stalledConnection = "stalled"
)

// Door counts and bounds the connections of one port. Safe for concurrent use.
type Door struct {
	limits Limits
	descs  descs

	mu        sync.Mutex
	open      map[*conn]struct{}
	addresses map[netip.Addr]int
	// held is the bytes that all open connections hold. A connection that reads nothing may be
	// counted for longer than it should.
	held      int64
	reviewing bool // a review is due because some connection holds too much

	refused, refusedOfAddress, stalled, late, unwatched atomic.Uint64
}

// New returns a door for a port. Its metrics have the port as a label.
func New(port string, limits Limits) *Door {
	return &Door{limits: limits, descs: newDescs(port), open: map[*conn]struct{}{},
		addresses: map[netip.Addr]int{}}
}

// Listener returns a listener that hands over the connections for which the door has room. It
// accepts and closes all others, so that they do not wait in the system's queue before those that
// could be served.
func (d *Door) Listener(l net.Listener) net.Listener { return listener{l, d} }

type listener struct {
	net.Listener
	door *Door
}

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.door.enter(raw); c != nil {
			return c, nil
		}
		reject(raw)
	}
}

// reject closes a connection at once, without waiting for the far end.
func reject(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// enter registers a connection, or returns nil if there is no room for it.
func (d *Door) enter(raw net.Conn) *conn {
	c := newConn(d, raw)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case len(d.open) >= d.limits.Connections:
		d.refused.Add(1)
		return nil
	case d.addresses[c.ip] >= d.limits.PerAddress:
		d.refusedOfAddress.Add(1)
		return nil
	}
	d.open[c] = struct{}{}
	d.addresses[c.ip]++
	return c
}

// leave forgets a closed connection.
func (d *Door) leave(c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, entered := d.open[c]; !entered {
		return
	}
	delete(d.open, c)
	if d.addresses[c.ip]--; d.addresses[c.ip] == 0 {
		delete(d.addresses, c.ip)
	}
	d.held -= c.holds()
	c.left = true
}

// addressOf returns the network (networkOf) of a far end's IP address. It returns the zero address for
// those without one.
func addressOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return networkOf(tcp.AddrPort().Addr())
	}
	return netip.Addr{}
}

// descs are the descriptions of one door's metrics.
type descs struct{ open, held, refused, late, unwatched *prometheus.Desc }

func newDescs(port string) descs {
	of := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, prometheus.Labels{"port": port})
	}
	return descs{
		open: of("quotad_connections", "Connections that are open, by port."),
		held: of("quotad_connections_held_bytes",
			"Bytes that were received and are not yet a message, and answers not yet written, by port; 0 for HTTP, whose requests are bounded one by one."),
		refused: of("quotad_connections_refused_total",
			"Connections that were closed because too many were open (listen.max_connections, listen.max_connections_per_address), or because for too long they held more than their part, by port and reason.",
			"reason"),
		late: of("quotad_calls_late_total",
			"gRPC calls that ended because their message did not arrive in time, by port."),
		unwatched: of("quotad_watches_refused_total",
			"Calls of gRPC health's Watch that were refused because their connection has as many as it may, by port."),
	}
}

// Describe implements prometheus.Collector.
func (d *Door) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{d.descs.open, d.descs.held, d.descs.refused,
		d.descs.late, d.descs.unwatched} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (d *Door) Collect(ch chan<- prometheus.Metric) {
	d.mu.Lock()
	d.sweep(time.Now())
	open, held := len(d.open), d.held
	d.mu.Unlock()
	ch <- prometheus.MustNewConstMetric(d.descs.open, prometheus.GaugeValue, float64(open))
	ch <- prometheus.MustNewConstMetric(d.descs.held, prometheus.GaugeValue, float64(held))
	for reason, n := range map[string]*atomic.Uint64{
		tooMany: &d.refused, tooManyOfAddress: &d.refusedOfAddress, stalledConnection: &d.stalled,
	} {
		ch <- prometheus.MustNewConstMetric(d.descs.refused, prometheus.CounterValue,
			float64(n.Load()), reason)
	}
	ch <- prometheus.MustNewConstMetric(d.descs.late, prometheus.CounterValue,
		float64(d.late.Load()))
	ch <- prometheus.MustNewConstMetric(d.descs.unwatched, prometheus.CounterValue,
		float64(d.unwatched.Load()))
}
