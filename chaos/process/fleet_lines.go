package process

import (
	"context"
	"net/netip"
	"strings"
)

// relayRegion is added to the third byte of a node's address for that of its
// relay.
const relayRegion = 100

// stand has a relay stand for a node that is still to be configured: the node
// advertises its address, and the seed is where another relay stands.
func (f *Fleet) stand(n *Node, file *nodeFile) error {
	ip := relayFor(n.IP)
	if err := f.Lines.add(n.Region, ip, n.IP); err != nil {
		return err
	}
	seed := netip.MustParseAddrPort(file.seed)
	file.seed = netip.AddrPortFrom(relayFor(seed.Addr()), gossipPort).String()
	settings := []string{`advertise: {peer: "` + netip.AddrPortFrom(ip, peerPort).String() + `", gossip: "` +
		netip.AddrPortFrom(ip, gossipPort).String() + `"}`, "chaos: true"}
	for _, line := range file.settings {
		if !strings.HasPrefix(line, "chaos:") {
			settings = append(settings, line)
		}
	}
	file.settings = settings
	return nil
}

// relayFor is the address of the relay of the node at an address.
func relayFor(node netip.Addr) netip.Addr {
	b := node.As4()
	b[2] += relayRegion
	return netip.AddrFrom4(b)
}

// copied starts a replica of the region's Redis, and a way that leads to the
// primary.
func (r *Region) copied(ctx context.Context, scope Scope) (err error) {
	if r.Replica, err = StartRedis(ctx, scope, RedisConfig{ReplicaOf: r.Redis}); err != nil {
		return err
	}
	r.Way, err = StartProxy(scope, r.Redis.Address)
	return err
}

// Change changes the faults of all ways between some regions and some others: from the
// first to the second, and back unless it is one-way.
func (f *Fleet) Change(some, others []string, oneWay bool, change func(*Fault)) {
	for way := range ways(some, others, oneWay) {
		f.Lines.Change(way[0], way[1], change)
	}
}

// StatsBetween adds up what the ways that Change is about did since the fleet was started.
func (f *Fleet) StatsBetween(some, others []string, oneWay bool) (all LineStats) {
	for way := range ways(some, others, oneWay) {
		all.plus(f.Lines.StatsOf(way[0], way[1]))
	}
	return all
}

// ways are the ways between some regions and others, each once.
func ways(some, others []string, oneWay bool) map[[2]string]struct{} {
	all := map[[2]string]struct{}{}
	for _, from := range some {
		for _, to := range others {
			if from == to {
				continue
			}
			all[[2]string{from, to}] = struct{}{}
			if !oneWay {
				all[[2]string{to, from}] = struct{}{}
			}
		}
	}
	return all
}
