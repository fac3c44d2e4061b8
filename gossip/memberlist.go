package gossip

import (
	"errors"
	"fmt"
	"log"
	"net/netip"

	"github.com/hashicorp/memberlist"
)

// dialect is the version of the messages in wire.go. Nodes of different
// dialects refuse each other instead of misreading each other.
const dialect = 1

// packetSize is the largest packet memberlist makes, in bytes, before a
// checksum of 5: it passes an Ethernet without being cut up.
const packetSize = 1400

// libraryConfig translates a configuration for memberlist. It starts from the
// library's presets because zero is a trap for several of its knobs: a
// QueueCheckInterval of 0 is a busy loop.
func libraryConfig(c Config, keys *memberlist.Keyring, t *transport, d *delegate, r *roster) *memberlist.Config {
	m := memberlist.DefaultWANConfig()
	m.Name = c.Name
	m.Transport = t
	m.Label = c.Label
	m.Keyring = keys
	m.GossipVerifyIncoming, m.GossipVerifyOutgoing = true, true

	m.AdvertiseAddr = c.Advertise.Addr().String()
	m.AdvertisePort = int(c.Advertise.Port())
	m.BindPort = m.AdvertisePort // taken for the port of whoever names none

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

	// A node in doubt about itself probes at half its pace, not at an eighth:
	// slower would put the failure of others beyond 10 s.
	m.AwarenessMaxMultiplier = 2
	// Where packets are filtered and streams are not, a failed packet probe
	// must not condemn anybody.
	m.DisableTcpPings = false
	// The rejoin loop knows addresses, not names.
	m.RequireNodeNames = false
	// Compressing costs 64 KiB of garbage for every packet.
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

// doorkeeper keeps nonsense out of the list of members. Without a key anybody
// may send it, and a single entry with versions that do not fit would make
// memberlist refuse every exchange from then on.
type doorkeeper struct {
	protocol uint8
	roster   *roster // nil: it lets in whoever speaks the protocol
}

// NotifyAlive implements memberlist.AliveDelegate. Who cannot be judged is not let in.
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

// nodeAddr is where a node says it is.
func nodeAddr(n *memberlist.Node) (netip.AddrPort, error) {
	ip, ok := netip.AddrFromSlice(n.Addr)
	ip = ip.Unmap()
	if !ok || ip.IsUnspecified() || n.Port == 0 {
		return netip.AddrPort{}, errors.New("it gives no address and port that could be reached")
	}
	return netip.AddrPortFrom(ip, n.Port), nil
}
