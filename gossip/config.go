package gossip

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// State is what gossip spreads; it belongs to the caller. Merge must be commutative, associative
// and idempotent, or nodes will not come to agree. Implementations are safe for concurrent use.
// They must not block for long, and must not call Leave or Close.
type State interface {
	// MarshalBinary returns the whole state, at most MaxState bytes.
	MarshalBinary() ([]byte, error)
	// Merge takes in a whole state or a small change, in the same encoding. It reports whether that
	// was news; a small change that was news is passed on to other nodes. The bytes come from the
	// network and may be anything. Merge must not keep b.
	Merge(b []byte) (news bool, err error)
}

// Member is a node that is alive in some node's view.
type Member struct {
	Name string
	Addr netip.AddrPort
	Meta []byte // what the node gave as Config.Meta; must not be modified
}

// Config says who a node is and how it reaches the others.
type Config struct {
	// Name is unique in the whole cluster, for example "us-east/n1": two nodes with the same name
	// displace each other. 1 to 128 bytes.
	Name string
	// Meta is handed to the others as Member.Meta; at most 512 bytes.
	Meta []byte

	// Packets, Streams and Dial are the network: real sockets, or chaos/lab/network. Start takes
	// over Packets and Streams and closes them, also if it fails. Dial must end when its context
	// does.
	Packets net.PacketConn
	Streams net.Listener
	Dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	// Advertise is where the others reach both Packets and Streams.
	Advertise netip.AddrPort

	// Seeds are the host:port of nodes that may be there. All nodes may have the same list. Names
	// are resolved again at every attempt.
	Seeds []string
	// Resolve looks up the host of a seed; nil means the system's resolver.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Remembered are ip:port of nodes known from an earlier run, as returned by Gossip.Remembered.
	Remembered []string

	// Keys encrypt and authenticate all messages with AES. The first key encrypts what is sent; any
	// of them may decrypt what is received. 16, 24 or 32 bytes each, at most 8 keys; none means
	// plain text. Every node must have the first key of every other. SetKeys changes them.
	Keys [][]byte

	// RejoinEvery is how often missing nodes are called, +-20 %; 0 means 5 s.
	RejoinEvery time.Duration
	// Timing is how often a node does each of its tasks; the zero value means WAN().
	Timing Timing

	// Admit, if set, reports whether a node may be a member, and to which group it belongs. A refused
	// node is no member, and is counted. Admit is called with memberlist's lock held, so it must be
	// quick and call nothing of Gossip.
	Admit func(m Member) (group string, err error)
	// MaxGroup bounds the members of one group; 0 means 256. Members beyond it, and more new names
	// than that within a short time, are refused and counted. Members that answered this node in
	// the last ten minutes are exempt.
	MaxGroup int

	// State is what gossip spreads.
	State State
	// Logger gets joins, leaves and failures at level info, and memberlist's own lines at debug;
	// nil means none.
	Logger *slog.Logger
	// Recovered is called for each panic that was recovered from, with its value. A panic is a
	// mistake in State or in this package. May be nil.
	Recovered Recoverer
	// OnChange, if set, is called with the members after changes, one call at a time. Several quick
	// changes may be one call. It must not call Close.
	OnChange func(members []Member)
}

const (
	maxName        = 128
	maxMeta        = 512
	defaultRejoin  = 5 * time.Second
	shortestRejoin = 100 * time.Millisecond
)

// withDefaults returns the configuration with defaults for the fields that are not set.
func (c Config) withDefaults() Config {
	c.RejoinEvery = cmp.Or(c.RejoinEvery, defaultRejoin)
	c.Timing = cmp.Or(c.Timing, WAN())
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Resolve == nil {
		c.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	c.Advertise = unmap(c.Advertise)
	return c
}

// validate returns everything that is wrong with a configuration.
func (c Config) validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("gossip: "+format, args...))
		}
	}
	check(len(c.Name) >= 1 && len(c.Name) <= maxName,
		"name %q has %d bytes, want 1 to %d: give every node a name of its own", c.Name,
		len(c.Name), maxName)
	check(len(c.Meta) <= maxMeta, "meta data has %d bytes, at most %d fit a packet", len(c.Meta),
		maxMeta)
	check(c.Packets != nil && c.Streams != nil && c.Dial != nil,
		"Packets, Streams and Dial must all be set")
	check(c.MaxGroup >= 0, "bound of %d members of a group is below 0", c.MaxGroup)
	check(c.State != nil, "State must be set")
	check(c.Advertise.IsValid() && !c.Advertise.Addr().IsUnspecified() && c.Advertise.Port() != 0,
		"advertised address %v is not one that others can reach: give an address and a port",
		c.Advertise)
	if err := checkKeys(c.Keys); err != nil {
		check(false, "%w, or none for plain text", err)
	}
	check(c.RejoinEvery >= shortestRejoin, "rejoin interval %v is below %v", c.RejoinEvery,
		shortestRejoin)
	for _, s := range c.Seeds {
		_, _, err := splitSeed(s)
		check(err == nil, "seed %q is not host:port: %v", s, err)
	}
	return errors.Join(errs...)
}

// splitSeed splits a seed into host and port.
func splitSeed(seed string) (host string, port uint16, err error) {
	host, service, err := net.SplitHostPort(seed)
	if err != nil {
		return "", 0, err
	}
	p, err := strconv.ParseUint(service, 10, 16)
	if err != nil || p == 0 || host == "" {
		return "", 0, errors.New("want a host and a port from 1 to 65535")
	}
	return host, uint16(p), nil
}

// unmap turns an IPv4 address mapped into IPv6 into the plain one, so that addresses compare.
func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
