// Package gossip spreads opaque bytes among the nodes of a cluster and knows which nodes are alive.
// It is an adapter of hashicorp/memberlist. No type of that library leaves the package, and the
// package knows nothing of what it spreads. The caller implements the State interface: marshal, and
// merge.
//
// # What holds
//
//   - A change given to Broadcast reaches the nodes that are alive within a few gossip intervals,
//     as long as packets get through. The whole state makes up for lost packets, at every push/pull
//     and whenever a member appears.
//   - Nodes find each other again after a cut of any length. memberlist alone does not ensure that:
//     once both sides have declared each other dead, neither calls any more. Here a loop calls for
//     ever those seeds and former members that are not alive in its view, so views heal within
//     about RejoinEvery x 1.2 plus a few round trips.
//   - With keys, no node without one of them is admitted or heard, and nothing is sent in plain
//     text. Keys can be replaced while nodes run.
//   - Every queue and every list is bounded: broadcasts, remembered peers, exchanges under way,
//     streams. What does not fit is dropped and counted.
//
// # What does not hold
//
//   - Delivery is not certain, not in order, and not only once. Merge must not mind.
//   - Members is one node's view. It is seconds late, and differs between nodes. Nothing may be
//     divided by it: a member that is missing may still be at work.
//   - Without keys any host that reaches the port can add members and feed Merge. With keys, any
//     holder of one can.
//
// Read config.go first, then rejoin.go.
package gossip
