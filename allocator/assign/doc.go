// Package assign divides what a node holds of a bucket between the Envoys that enforce it
// themselves (Envoy's rate limit quota service, RLQS). It is one machine that a driver steps. The
// driver tells it what Envoys report and what the store answers, and each Tick returns the work to
// do. It has no clock, goroutine, random source or I/O of its own.
//
// An Envoy enforces an assignment as a token bucket: a rate, a burst, and a time to live (TTL). An
// assignment is a lease: the Envoy asks nobody, and nobody can take it back before its TTL is over.
// So a node must hold beforehand what it assigns:
//
//   - The rate. The node holds rights of this cell and the next, taken out of its region's store
//     (Hold). At each moment of a cell, all assignments that may be in force have together at most
//     the rate that the node holds of the cell.
//   - The burst. The token bucket of a new or changed assignment starts full. The node pays for its
//     tokens from a purse, which it fills by charges to the store (Charge). The bursts of all
//     assignments and the purse together are at most the node's part of the limit's max_burst. The
//     store's own bucket is smaller by max_burst.
//
// An Envoy's reports say what it wants. They never free rights, because counters are lost while a
// stream is down. Rights come free when an assignment has surely ended.
//
// "Surely" rests on one assumption: a message takes Late at most. An Envoy that was paused may take it
// later. It may then admit the assignment's burst, and its rate for its TTL, too much. Of a report the
// assumption is needed of one in a stream: of the others it shows how late they are.
//
//	machine.go   events, effects, ticks
//	pool.go      what the node holds of one bucket, cell by cell
//	share.go     one Envoy's part of a bucket: its demand, and what was assigned to it
//	proof.go     when a report was sent
//	demand.go    what an Envoy probably wants by now
//	aim.go       how much each Envoy should have
//	window.go    units of a fixed window, each of which is spent once
//	purse.go     tokens paid for in advance
//	send.go      which assignments to send
//	view.go      what people are shown
package assign
