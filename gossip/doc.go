// Package gossip spreads opaque bytes among the nodes of a cluster and knows
// which of them are alive. It is an adapter of hashicorp/memberlist; no type of
// that library leaves the package, and the package knows nothing of what it
// spreads. The caller's half is the State interface: marshal, and merge.
//
// # What holds
//
//   - A change handed to Broadcast reaches the nodes that are alive within a
//     few gossip intervals, as long as packets get through; the whole state
//     repairs what packets lost, at every push/pull and whenever a member
//     appears.
//   - Nodes find each other again after a cut of any length. memberlist alone
//     does not: once both sides have declared each other dead, nobody calls
//     any more. Here a loop calls for ever those seeds and former members that
//     are not alive in its view, so views heal within about RejoinEvery x 1.2
//     plus a few round trips.
//   - With keys, nobody without one of them is admitted or heard, and nothing
//     is sent in plain text. Keys are replaced while nodes run.
//   - Every queue and every list is bounded: broadcasts, remembered peers,
//     exchanges under way, streams. What does not fit is dropped and counted.
//
// # What does not hold
//
//   - Nothing is delivered for certain, in order, or once. Merge must not mind.
//   - Members is one node's view, seconds late, and differs between nodes. It
//     is no basis for dividing anything; that a member is missing says nothing
//     about whether it is still at work.
//   - Without keys any host that reaches the port can add members and feed
//     Merge. With keys, any holder of one can.
//
// Read config.go first, then rejoin.go.
package gossip
