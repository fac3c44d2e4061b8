package gossip

import (
	"errors"
	"fmt"
	"log"
	"net/netip"

	"github.com/hashicorp/memberlist"
)

// dialect is the version of the messages in wire.go. Nodes of different dialects refuse each other,
// so that they do not misread each other.
const dialect = 1

// packetSize is the largest packet that memberlist makes, in bytes, without a checksum of 5 bytes.
// It passes an Ethernet without being fragmented.
const packetSize = 1400

// libraryConfig translates a configuration for memberlist. It starts from the library's presets,
// because several of its fields must not be zero: a QueueCheckInterval of 0 is a busy loop.
func libraryConfig(c Config, keys *memberlist.Keyring, t *transport, d *delegate, r *roster) *memberlist.Config {
	m := memberlist.DefaultWANConfig()
	m.Name = c.Name
	m.Transport = t
	m.Keyring = keys
	m.GossipVerifyIncoming, m.GossipVerifyOutgoing = true, true

	m.AdvertiseAddr = c.Advertise.Addr().String()
	m.AdvertisePort = int(c.Advertise.Port())
	m.BindPort = m.AdvertisePort // used as the port of nodes that name none

	m.ProbeInterval = c.Timing.ProbeInterval
	m.ProbeTimeout = c.Timing.ProbeTimeout
	m.IndirectChecks = c.Timing.IndirectProbes
	m.SuspicionMult = c.Timing.SuspicionMult
	m.SuspicionMaxTimeoutMult = c.Timing.SuspicionMaxMult
	m.GossipInterval = c.Timing.GossipInterval
	m.GossipNodes = c.Timing.GossipNodes
	m.RetransmitMult = c.Timing.RetransmitMult
	m.GossipToTheDeadTime = c.Timing.DeadGossip
	m.PushPullInterval = c.Timing.PushPullInterval
	m.TCPTimeout = c.Timing.StreamTimeout
	m.DeadNodeReclaimTime = c.Timing.NameReclaim

	// A node that doubts its own health probes at half its pace, not at an eighth: slower probing
	// would find the failure of others only after more than 10 s.
	m.AwarenessMaxMultiplier = 2
	// Where packets are filtered but streams are not, a failed packet probe must not declare a node
	// dead.
	m.DisableTcpPings = false
	// The rejoin loop knows addresses, not names.
	m.RequireNodeNames = false
	// Compression costs 64 KiB of garbage for every packet.
	m.EnableCompression = false
	m.UDPBufferSize = packetSize

	m.DelegateProtocolMin, m.DelegateProtocolMax, m.DelegateProtocolVersion = dialect, dialect, dialect
	m.Delegate = d
	m.Events = r
	m.Conflict = r
	m.Ping = r
	m.Alive = doorkeeper{protocol: m.ProtocolVersion, roster: r}
	m.Logger = log.New(lines{c.Logger}, "", 0)
	return m
}

// doorkeeper keeps invalid entries out of the list of members. Without a key anybody may send them.
// A single entry with versions that do not fit would make memberlist refuse every exchange from
// then on.
type doorkeeper struct {
	protocol uint8
	roster   *roster // nil: every node that speaks the protocol is let in
}

// NotifyAlive implements memberlist.AliveDelegate. If it panics, the node is not let in.
func (k doorkeeper) NotifyAlive(n *memberlist.Node) (err error) {
	if k.roster != nil {
		err = errors.New("it cannot be judged")
		defer k.roster.panics.recover()
	}
	switch {
	case n.Name == "" || len(n.Name) > maxName:
		return fmt.Errorf("its name has %d bytes, want 1 to %d", len(n.Name), maxName)
	case len(n.Meta) > maxMeta:
		return fmt.Errorf("its meta data has %d bytes, want at most %d", len(n.Meta), maxMeta)
	case n.PMin > k.protocol || n.PMax < k.protocol || n.PCur != k.protocol:
		return fmt.Errorf("it speaks protocol %d of [%d, %d], this node %d", n.PCur, n.PMin, n.PMax, k.protocol)
	case n.DMin > dialect || n.DMax < dialect || n.DCur != dialect:
		return fmt.Errorf("it speaks dialect %d of [%d, %d], this node %d", n.DCur, n.DMin, n.DMax, dialect)
	}
	addr, bad := nodeAddr(n)
	if bad != nil || k.roster == nil {
		return bad
	}
	return k.roster.admit(Member{Name: n.Name, Addr: addr, Meta: n.Meta})
}

// nodeAddr returns the address that a node gives for itself.
func nodeAddr(n *memberlist.Node) (netip.AddrPort, error) {
	ip, ok := netip.AddrFromSlice(n.Addr)
	ip = ip.Unmap()
	if !ok || ip.IsUnspecified() || n.Port == 0 {
		return netip.AddrPort{}, errors.New("it gives no address and port that could be reached")
	}
	return netip.AddrPortFrom(ip, n.Port), nil
}
