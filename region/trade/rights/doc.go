// Package rights carries out the exchange of rights between regions for one node.
//
// The protocol is the machine of package allocator/exchange. One goroutine steps it ([Engine.Run])
// with events: decisions on requests (observe.go), messages and questions of other nodes
// (serve.go), the results of effects, and the passing of time. Events wait in lanes until the
// machine can hear them (events.go). Other goroutines carry out the machine's effects, whose
// results come back as events:
//
//	lend, record, call, credit     the four steps of a transfer (effects.go)
//	recall, consult, restore       the recovery of what a store lost (recovery.go)
//	hints                          what gossip spreads, and what it brought (hints.go)
//
// A request may need more than one answer of the store. Then it waits here (waiters.go): for
// rights, for a lost bucket (lost.go), or for a bucket that a loss closed although nobody used it.
//
// The engine also remembers which buckets this node used, and for long windows how much
// (lastseen.go, uses.go). Otherwise nobody could tell a deleted bucket from a new one, or say what
// was used of a lost one. Other nodes get copies of that (copy.go, elsewhere.go). names.go
// remembers the nodes that are gone, and reading.go reads the store where no journal has what they
// did.
package rights
