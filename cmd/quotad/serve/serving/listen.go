package serving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/serve/nodeconfig"
	"github.com/quotad/quotad/region/base/door"
)

// sockets are the open listeners of a node.
type sockets struct {
	grpc, http, admin, peer net.Listener
	gossip                  net.Listener
	packets                 net.PacketConn // on gossip's port
}

// doors bound what callers of each port may hold. Gossip has its own bounds.
type doors struct{ grpc, http, admin, peer *door.Door }

func newDoors(l door.Limits) doors {
	return doors{grpc: door.New("grpc", l), http: door.New("http", l), admin: door.New("admin", l),
		peer: door.New("peer", l)}
}

// register adds the doors' metrics to the node's.
func (d doors) register(r *prometheus.Registry) { r.MustRegister(d.grpc, d.http, d.admin, d.peer) }

// openSockets opens all listeners, or none.
func openSockets(c *nodeconfig.Config) (_ *sockets, err error) {
	s := &sockets{}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	for _, one := range []struct {
		setting string
		at      netip.AddrPort
		open    *net.Listener
	}{
		{"listen.grpc", c.Listen.GRPC, &s.grpc},
		{"listen.http", c.Listen.HTTP, &s.http},
		{"listen.admin", c.Listen.Admin, &s.admin},
		{"listen.peer", c.Listen.Peer, &s.peer},
		{"listen.gossip", c.Listen.Gossip, &s.gossip},
	} {
		if *one.open, err = net.Listen("tcp", one.at.String()); err != nil {
			return nil, cannotListen(one.setting, err)
		}
	}
	// Port 0 is any port. Packets use the port that the streams got.
	at := netip.AddrPortFrom(c.Listen.Gossip.Addr(), listening(s.gossip).Port())
	if s.packets, err = net.ListenPacket("udp", at.String()); err != nil {
		return nil, cannotListen("listen.gossip", err)
	}
	return s, nil
}

func cannotListen(setting string, err error) error {
	return fmt.Errorf("%s: %w; stop what uses the port, or choose another with --%s", setting, err,
		nodeconfig.Setting{Path: setting}.Flag())
}

// close closes the sockets that are open. Closing a socket that the node has closed does nothing.
func (s *sockets) close() {
	for _, l := range []net.Listener{s.grpc, s.http, s.admin, s.peer, s.gossip} {
		if l != nil {
			_ = l.Close()
		}
	}
	if s.packets != nil {
		_ = s.packets.Close()
	}
}

// listening returns the address on which a TCP listener listens.
func listening(l net.Listener) netip.AddrPort { return l.Addr().(*net.TCPAddr).AddrPort() }

// advertised holds the addresses at which others reach a node.
type advertised struct {
	peer   string
	gossip netip.AddrPort
}

// lookUpAdvertised returns the addresses at which others reach the node: the configured ones, else
// those on which it listens.
func lookUpAdvertised(
	ctx context.Context, c *nodeconfig.Config, peer, gossip netip.AddrPort,
) (a advertised, err error) {
	a = advertised{cmp.Or(c.Advertise.Peer, peer.String()), gossip}
	if c.Advertise.Gossip == "" {
		return a, nil
	}
	if a.gossip, err = resolve(ctx, c.Advertise.Gossip); err != nil {
		return a, exit.Usage(c.Fail("advertise.gossip", err.Error(),
			"write an IP address, or correct the name"))
	}
	return a, nil
}

// resolveTimeout bounds the look-up of the node's own name.
const resolveTimeout = 5 * time.Second

// resolve converts host:port to an IP address and port, because gossip tells others only those.
func resolve(ctx context.Context, hostPort string) (netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(hostPort)
	if err != nil {
		return netip.AddrPort{}, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return netip.AddrPort{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	for _, ip := range found {
		if ip = ip.Unmap(); !ip.IsUnspecified() {
			return netip.AddrPortFrom(ip, uint16(port)), nil
		}
	}
	return netip.AddrPort{}, errUnresolved
}

// errUnresolved says that no address was found for a name to advertise.
var errUnresolved = errors.New("the name has no address that others could call")
