// Package sim plays whole regions in virtual time, from a seed, and checks after everything that happens that the promise
// holds.
//
// # What is played
//
// A world is 2 to 10 regions: a store, one to three nodes, clocks. A node is a region.Stepped, so that its machine, its
// execution of effects, recovery, memory of what it saw, fallback, receipts, hints and rules are the code that serves; its
// store is the production store.Store over a lab.Twin, the Go twin of the scripts, or on an embedded Redis with the
// production Lua (Plan.Lua), which a test holds to be the same run to the last message; its journal is the production
// journal.Journal over a lab.Disk, which a test holds equal to the bbolt file. Messages are carried as the
// bytes that region/peer and the hints make of them. What is not played: gRPC, TLS, memberlist (hints reach every node by
// themselves, late), Redis Cluster, two primaries that serve at once, and requests that come while others of the same node
// are under way.
//
// Everything happens in one goroutine, one occurrence after another, at times and in an order that follow from the plan
// alone: same seed, same bytes.
//
// # What goes wrong
//
// The deeds of plan.go, each of a row of the fault matrix (rows.go). A row counts as fired only when it changed a message, a
// durable write or a clock that was read. A node may die before and after each act of the protocol: a debit, a record, a
// reply, a credit, a recovery's question, answer and restore.
//
// The wider draw (Config.Wider, quotad simulate --wider; wider.go) has a random stream of its own, so that
// what a seed means without it stays. It has requests of a key go to one node only, one node's clock step
// and no other, the store's clock step before the store is lost, a machine with node and store begin anew, a
// snapshot of the store put back, the nodes of a region unable to hear each other, stores that answer too
// late under load, and more buckets used than nodes have room to remember, in runs of three windows of a
// length that is restored.
//
// # What must hold
//
//	ceiling       what all regions admit, as package oracle judges it, never exceeds the limit by more than what the printed
//	              bounds allow for what has happened: by bucket and cell (losses.go, allowance.go)
//	conservation  shares of a cell add up to the limit at most; nobody lends more than it may; nobody counts what was not given
//	time          a store's time never falls
//	local         no region has used more than its share
//	rows          no row goes back, but by a loss
//	journal       no reply announces what the node's journal has not taken
//	asked         a debit gives no more than was asked for, however often that was
//	void          nothing is lent to a region that has not answered for three seconds
//	fallback      a region cut off from all others is at its fixed split from the second cell on
//	answers       decisions carry true labels; costs that are none are refused
//	once          a request that is named is charged once
//	refund        a charge is given back once
//	documents     a node that worked under a document does not go back behind it
//	convergence   after the last fault all nodes live and hear each other, requests are decided by the store, and a region with
//	              demand is given what the others do not need
package sim
