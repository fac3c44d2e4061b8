// Package rights carries out the exchange of rights between regions for one node.
//
// The protocol is the machine of package allocator/exchange. [Engine.Run] steps it, in one goroutine: with what was decided
// (observe.go), with the messages and questions of other nodes (serve.go), with the ends of effects, and with the passing of
// time. Events wait for it in lanes (events.go). What the machine answers is carried out beside it, and comes back as an event:
//
//	lend, record, credit, call     the four steps of a transfer (effects.go)
//	recall, consult, restore       the recovery of what a store lost (recovery.go)
//	hints                          what gossip spreads, and what it brought (hints.go)
//
// A request that needs more than the store's answer waits for buckets here (waiters.go): for rights, for a lost bucket
// (lost.go), for one that is closed although nobody used it.
//
// The engine also remembers which buckets this node used, and of long windows how much (lastseen.go, uses.go): without it nobody
// could tell a deleted bucket from a new one, nor say what was used of one that was lost.
package rights
