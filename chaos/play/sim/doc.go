// Package sim simulates whole regions in virtual time from a seed, and checks the promise of quotad
// after every occurrence.
//
// # What is simulated
//
// A world has 2 to 10 regions, each with a store, one to three nodes, and clocks.
//
// A node is a Stepped of chaos/lab/node: its machine, execution of effects, recovery, memory of
// what it last saw, fallback, receipts, hints and rules are the production code. Its store is the
// production store.Store over a lab.Twin, the Go twin of the scripts, or over an embedded Redis
// with the production Lua (Plan.Lua). A test holds that both give the same run to the last message.
// Its journal is the production journal.Journal over a lab.Disk. A test holds that a lab.Disk
// behaves as the bbolt file. Messages are encoded to bytes by region/trade/peer and by the code of the
// hints.
//
// Not simulated: gRPC, TLS, memberlist (hints reach every node by themselves, late), slots of a
// Redis Cluster that move, two primaries that serve at once, units that clients hold, and the part of
// its tokens that an Envoy carries over.
//
// Decisions run as goroutines of the node (chaos/lab/node/routines.go), of which one runs at a time
// until it waits. With the busy draw (Config.Busy, quotad simulate --busy; overload.go) calls for
// decisions take time, so that requests queue; otherwise they take none. In half of its plans a store is
// several servers, each with its own time, and some do not answer for a while (lanes.go).
//
// Everything happens in one goroutine, one occurrence after another, at times and in an order that
// follow from the plan alone: the same seed gives the same bytes.
//
// # What goes wrong
//
// The deeds are listed in plan.go. Each belongs to a row of the fault matrix (rows.go). A row
// counts as fired only when it changed a message, a durable write or a clock that was read. A node
// may die before and after each act of the protocol: a debit, a record, a reply, a credit, and a
// recovery's question, answer and restore.
//
// The wider draw (Config.Wider, quotad simulate --wider; wider.go) has a random stream of its own,
// so that seeds keep their meaning without it. It adds:
//
//   - requests of a key that all go to one node
//   - the clock of one node stepping, and no other
//   - the store's clock stepping before the store is lost
//   - a machine with a node and the store that starts again without the store's data
//   - a snapshot of the store put back
//   - nodes of a region that cannot hear each other
//   - stores that answer too late under load
//   - more buckets in use than the nodes have room to remember
//   - nodes that are added to a region, with or without the others' files saying so
//   - nodes that end for good, with nobody in their place
//   - a zone that is lost: a store and the journals of one node, or of all nodes but one
//   - an operator's word that nobody need be waited for
//
// Its runs take three windows, if the longest window is at most 90 s.
//
// The draw with units that nodes hold (Config.Prefetch, quotad simulate --prefetch; prefetch.go, frozen.go)
// has machines stand still with all their clocks.
//
// The draw with costs that are known only afterwards (Config.Owing, quotad simulate --owing; owing.go) has
// limits be charged always. The judge counts of a charge what fitted; what did not is owed.
//
// The varied draw (Config.Varied, quotad simulate --varied; varied.go) has limits say what the
// others leave out, settles charges of all kinds, and resets buckets.
//
// The draw with classes (Config.Classes, quotad simulate --classes; classes.go) has limits say
// which requests go first, and requests of their classes, of none, and of one that no limit has.
//
// The draw with large costs (Config.Large, quotad simulate --large; large.go) has some requests cost up to
// the whole limit, and their callers come again.
//
// The draw of documents (Config.Documents, quotad simulate --documents; changes.go, edits.go) plays an
// operator who edits the limits document: numbers and weights, limits that are taken out, put back,
// added, renamed and moved, regions that are fenced, return, are removed and join. Half of the plans
// tell a story about one limit and a region that is cut off meanwhile. Which documents are in force,
// and what they allow at most in a cell, is in inforce.go.
//
// # What must hold
//
//	ceiling       what all regions admit, as package oracle judges it, never exceeds the largest
//	              limit in force by more than the printed bounds allow for what has happened, by
//	              bucket and cell (inforce.go, losses.go, allowance.go)
//	conservation  the shares of a cell add up to at most the limit; no region lends more than
//	              it may; no region counts rights that it was not given
//	time          a store's time never falls, but after a loss to the latest time that a node of its
//	              region was told which opens the store or which that one reaches
//	local         no region has used more than its share
//	rows          no row falls, except by a loss
//	journal       no reply announces a row that the node's journal has not stored
//	asked         a debit gives no more than was asked for, even if asked several times
//	void          nothing is lent to a region that has not answered for three seconds
//	fallback      a region cut off from all others is at its fixed split from the second cell on
//	answers       decisions carry true labels; costs out of range are refused; a request is answered
//	              within the time that it waits
//	lanes         a request waits for its store no longer than its node has round trips under way to the
//	              servers that the request is for; if those answer, it is decided with them
//	shadow        a shadow limit never denies
//	classes       a request of a class is admitted only while all use fits into the class's part of
//	              what its region holds, as package oracle judges it of windows
//	once          a request with a request_id is charged once
//	refund        a charge is given back once
//	documents     a node that worked under a document does not go back to an older one
//	convergence   after the last fault all nodes live and hear each other and work under the newest
//	              document, alone if there is time for that, and a region with demand is given what
//	              the others do not need
//	liveness      after the last fault, and the time that a table allows for what has happened, every
//	              bucket is decided with the store of each region that has a part, and does not
//	              answer recovering (liveness.go)
package sim
