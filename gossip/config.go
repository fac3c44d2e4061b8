package gossip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// State is what is spread; it belongs to the caller. Merge must be commutative,
// associative and idempotent, or nodes will not come to agree. Implementations
// are safe for concurrent use, and must neither block for long nor call back
// into Leave or Close.
type State interface {
	// MarshalBinary returns the whole state, at most MaxState bytes.
	MarshalBinary() ([]byte, error)
	// Merge takes in a whole state or a small change, in the same encoding,
	// and says whether it was news; news of a small change is passed on. The
	// bytes come from the network and may be anything; b must not be kept.
	Merge(b []byte) (news bool, err error)
}

// Member is a node that is alive in somebody's view.
type Member struct {
	Name string
	Addr netip.AddrPort
	Meta []byte // what the node gave as Config.Meta; must not be modified
}

// Config says who a node is and how it reaches the others.
type Config struct {
	// Name is unique in the whole cluster, for example "us-east/n1": two nodes
	// of one name displace each other. 1 to 128 bytes.
	Name string
	// Meta is handed to the others as Member.Meta; at most 512 bytes.
	Meta []byte

	// Packets, Streams and Dial are the network: real sockets, or chaos/lab/network.
	// Start takes over Packets and Streams and closes them, also if it fails.
	// Dial must end when its context does.
	Packets net.PacketConn
	Streams net.Listener
	Dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	// Advertise is where the others reach both Packets and Streams.
	Advertise netip.AddrPort

	// Seeds are host:port of nodes that may be there, the same list for all if
	// one likes. Names are resolved anew at every attempt.
	Seeds []string
	// Resolve looks up the host of a seed; nil means the system's resolver.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Remembered are ip:port of nodes known from an earlier run, as returned
	// by Gossip.Remembered.
	Remembered []string

	// Keys encrypt and authenticate everything with AES: the first what is
	// sent, any what is received. 16, 24 or 32 bytes each, at most 8 of them;
	// none means plain text. Every node has the first key of every
	// other. SetKeys changes them.
	Keys [][]byte
	// Label keeps clusters apart that could reach each other by mistake; at
	// most 255 bytes. All nodes have the same.
	Label string

	// RejoinEvery is how often those who are missing are called, +-20 %; 0
	// means 5 s.
	RejoinEvery time.Duration
	// Timing is how often a node does what; the zero value means WAN().
	Timing Timing

	// Admit, if set, says whether a node may be a member, and to which group it
	// belongs: whom it refuses is no member, and is counted. It is called with
	// memberlist's lock held, so it must be quick and call nothing of Gossip.
	Admit func(m Member) (group string, err error)
	// MaxGroup bounds the members of one group; 0 means 256. Of a new name more
	// than that within a short time, and members beyond it, are refused and
	// counted, but for those who answered this node in the last ten minutes.
	MaxGroup int

	// State is what is spread.
	State State
	// Logger hears of joins, leaves and failures at level info, and of
	// memberlist's own lines at debug; nil means silence.
	Logger *slog.Logger
	// Recovered hears of each panic that was recovered from, a mistake in State or
	// in this package, with what it was about; nil: nobody does.
	Recovered Recoverer
	// OnChange, if set, is called with the members after changes, one call at
	// a time; quick successions are one call. It must not call Close.
	OnChange func(members []Member)
}

const (
	maxName        = 128
	maxMeta        = 512
	maxLabel       = 255
	defaultRejoin  = 5 * time.Second
	shortestRejoin = 100 * time.Millisecond
)

// withDefaults fills in what was left out.
func (c Config) withDefaults() Config {
	if c.RejoinEvery == 0 {
		c.RejoinEvery = defaultRejoin
	}
	if c.Timing == (Timing{}) {
		c.Timing = WAN()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Resolve == nil {
		c.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	c.Advertise = unmap(c.Advertise)
	return c
}

// validate says everything that is wrong with a configuration.
func (c Config) validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("gossip: "+format, args...))
		}
	}
	check(len(c.Name) >= 1 && len(c.Name) <= maxName,
		"name %q has %d bytes, want 1 to %d: give every node a name of its own", c.Name, len(c.Name), maxName)
	check(len(c.Meta) <= maxMeta, "meta data has %d bytes, at most %d fit a packet", len(c.Meta), maxMeta)
	check(c.Packets != nil && c.Streams != nil && c.Dial != nil, "Packets, Streams and Dial must all be set")
	check(c.MaxGroup >= 0, "bound of %d members of a group is below 0", c.MaxGroup)
	check(c.State != nil, "State must be set")
	check(c.Advertise.IsValid() && !c.Advertise.Addr().IsUnspecified() && c.Advertise.Port() != 0,
		"advertised address %v is not one that others can reach: give an address and a port", c.Advertise)
	if err := checkKeys(c.Keys); err != nil {
		check(false, "%w, or none for plain text", err)
	}
	check(len(c.Label) <= maxLabel, "label has %d bytes, want at most %d", len(c.Label), maxLabel)
	check(c.RejoinEvery >= shortestRejoin, "rejoin interval %v is below %v", c.RejoinEvery, shortestRejoin)
	for _, s := range c.Seeds {
		_, _, err := splitSeed(s)
		check(err == nil, "seed %q is not host:port: %v", s, err)
	}
	return errors.Join(errs...)
}

// splitSeed takes a seed apart.
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

// unmap turns an IPv4 address in IPv6 clothes into the plain one, so that
// addresses compare.
func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
