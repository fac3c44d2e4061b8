package gossip

import "time"

// Timing is how often a node does each of its tasks. In the formulas n is the number of nodes, S
// the size of the marshalled state, and RTT the round trip between the two nodes that are furthest
// apart. Start from WAN and change single fields.
type Timing struct {
	// ProbeInterval is how often a node probes another one, each in its turn. It must be long
	// enough for a direct probe and an indirect one after it: ProbeTimeout + 2 RTT. Cost: 2 packets
	// per node and interval.
	ProbeInterval time.Duration
	// ProbeTimeout is how long a direct probe waits before other nodes are asked to probe: RTT and
	// some queueing.
	ProbeTimeout time.Duration
	// IndirectProbes is how many other nodes are asked to probe; a stream is tried as well. Cost: 4
	// packets each, for failed probes only.
	IndirectProbes int
	// SuspicionMult says how long a silent node has to defend itself, while all nodes spread the
	// suspicion so that it hears of it: SuspicionMult x max(1, log10 n) x ProbeInterval. A lower
	// value finds dead nodes sooner, but also declares slow ones dead.
	SuspicionMult int
	// SuspicionMaxMult stretches that time while fewer than SuspicionMult - 2 other nodes agree; 1
	// does not wait for them. A region that is cut off has few nodes left to agree, and a node
	// declared dead in error is back after one round of calls.
	SuspicionMaxMult int

	// GossipInterval is how often queued changes are sent.
	GossipInterval time.Duration
	// GossipNodes is to how many nodes they are sent each time. Cost: at most GossipNodes packets
	// of 1,400 bytes per node and interval, none when nothing is queued.
	GossipNodes int
	// RetransmitMult says how often one node sends one change: RetransmitMult x ceil(log10(n + 1))
	// times. Cost: n times that in all. A node that a change misses must wait for a push/pull. In a
	// cluster of five without loss, that is 1 node in 1,000 with 4 here and 3 GossipNodes, and none
	// in 4,000 with 6 and 4.
	RetransmitMult int
	// DeadGossip is how long dead nodes are still told of changes, so that one that was silent for
	// a while can defend itself.
	DeadGossip time.Duration

	// PushPullInterval is how often a node exchanges its whole state with another node, chosen at
	// random; doubled beyond 32 nodes, tripled beyond 64. Cost: 2 S per node and interval. A change
	// whose packets were lost, in a cut too short to be noticed, reaches all nodes in about 1 +
	// log3(n) intervals.
	PushPullInterval time.Duration
	// StreamTimeout bounds each step of an exchange: dialing, sending, receiving. During a cut a
	// call hangs that long.
	StreamTimeout time.Duration
	// NameReclaim is how long a name stays bound to the address of a dead node before the same name
	// may return from another address.
	NameReclaim time.Duration
}

// WAN suits regions with round trips of 10 to 300 ms, and is the default. In a cluster of three a
// dead node is found within 4 to 10 s: at most 2.4 s until it is probed, 1.2 s for the probe (2.4 s
// if the prober doubts its own health) and 4.8 s of suspicion. A node that loses many others at
// once probes them one after the other, and takes some seconds longer for the last.
func WAN() Timing {
	return Timing{
		ProbeInterval:    1200 * time.Millisecond, // 500 ms + 2 x 300 ms + 100 ms
		ProbeTimeout:     500 * time.Millisecond,  // 300 ms + 200 ms of queueing
		IndirectProbes:   3,
		SuspicionMult:    4,
		SuspicionMaxMult: 1,
		GossipInterval:   200 * time.Millisecond,
		GossipNodes:      4,
		RetransmitMult:   6,
		DeadGossip:       30 * time.Second,
		PushPullInterval: 5 * time.Second,
		StreamTimeout:    5 * time.Second,
		NameReclaim:      5 * time.Second,
	}
}
