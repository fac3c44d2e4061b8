package door

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Limits bound the connections of one door.
type Limits struct {
	Connections int // open at a time
	PerAddress  int // open at a time from one IP address; behind a proxy that is all callers
}

// The reasons for which a door refuses or ends a connection, as its metric names them.
const (
	tooMany           = "connections"
	tooManyOfAddress  = "connections_of_address"
	stalledConnection = "stalled"
)

// Door counts and bounds the connections of one port. Safe for concurrent use.
type Door struct {
	port   string
	limits Limits

	mu        sync.Mutex
	open      map[*conn]struct{}
	addresses map[netip.Addr]int
	held      int64 // by all open connections; a connection that reads nothing may be counted for longer than it should
	reviewing bool  // a review is due, for some connection holds too much

	refused, refusedOfAddress, stalled, late atomic.Uint64
}

// New returns a door for a port, which is how its metrics name it.
func New(port string, limits Limits) *Door {
	return &Door{port: port, limits: limits, open: map[*conn]struct{}{}, addresses: map[netip.Addr]int{}}
}

// Listener returns a listener that hands over the connections that the door has room for. It accepts and closes the others,
// so that they do not wait in the system's queue before those that could be served.
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

// reject closes a connection without waiting for the far end to agree.
func reject(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// enter takes a connection in; nil: there is no room for it.
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

// leave forgets a connection that is closed.
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
}

// addressOf returns the IP address of a far end; the zero address stands for all that have none.
func addressOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

var (
	openDesc = prometheus.NewDesc("quotad_connections", "Connections that are open, by port.", []string{"port"}, nil)
	heldDesc = prometheus.NewDesc("quotad_connections_held_bytes",
		"Bytes that connections had the node receive and that are not yet a message, and answers not yet written, by port; 0 for HTTP, whose requests are bounded one by one.",
		[]string{"port"}, nil)
	refusedDesc = prometheus.NewDesc("quotad_connections_refused_total",
		"Connections that were closed because too many were open (listen.max_connections, listen.max_connections_per_address), or because they stalled with more received than their share, by port and reason.",
		[]string{"port", "reason"}, nil)
	lateDesc = prometheus.NewDesc("quotad_calls_late_total",
		"gRPC calls that were ended because their message did not arrive in time, by port.", []string{"port"}, nil)
)

// Describe implements prometheus.Collector.
func (d *Door) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{openDesc, heldDesc, refusedDesc, lateDesc} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (d *Door) Collect(ch chan<- prometheus.Metric) {
	d.mu.Lock()
	d.sweep(time.Now())
	open, held := len(d.open), d.held
	d.mu.Unlock()
	ch <- prometheus.MustNewConstMetric(openDesc, prometheus.GaugeValue, float64(open), d.port)
	ch <- prometheus.MustNewConstMetric(heldDesc, prometheus.GaugeValue, float64(held), d.port)
	for reason, n := range map[string]*atomic.Uint64{
		tooMany: &d.refused, tooManyOfAddress: &d.refusedOfAddress, stalledConnection: &d.stalled,
	} {
		ch <- prometheus.MustNewConstMetric(refusedDesc, prometheus.CounterValue, float64(n.Load()), d.port, reason)
	}
	ch <- prometheus.MustNewConstMetric(lateDesc, prometheus.CounterValue, float64(d.late.Load()), d.port)
}
