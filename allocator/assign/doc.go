// Package assign divides what a node holds of a bucket between the Envoys that enforce it
// themselves (Envoy's rate limit quota service, RLQS). It is one machine that a driver steps: the
// driver tells it what Envoys report and what the store answers, and each Tick returns the work to
// do. It has no clock, goroutine, random source or I/O of its own.
//
// An Envoy enforces an assignment as a token bucket: a rate, a burst, and a time to live (TTL). It
// asks nobody, and nobody can take an assignment back before its TTL is over. So a node must hold
// beforehand what it assigns:
//
//   - The rate. The node holds rights of this cell and the next out of its region's store (Hold). At
//     each moment of a cell the rates of all assignments that may be in force then are at most what
//     the node holds of the cell.
//   - The burst. The token bucket of a new or changed assignment starts full. The node pays for its
//     tokens from a purse, which it fills by charges to the store (Charge). The bursts of all
//     assignments and the purse together are at most the node's part of the limit's max_burst, and
//     the store's own bucket is smaller by that.
//
// An Envoy's reports say what it wants. They never free rights: counters are lost while a stream is
// down. Rights come free when an assignment has surely ended.
//
// What "surely" rests on: an Envoy takes a message within Late. One that takes it later (it was
// paused) may admit an assignment's rate for its TTL, and its burst, too much.
//
//	machine.go   events, effects, ticks
//	pool.go      what the node holds of one bucket, cell by cell
//	share.go     one Envoy's part of a bucket: its demand, and what was assigned to it
//	aim.go       how much each Envoy should have
//	purse.go     tokens paid for in advance
//	send.go      which assignments to send
//	view.go      what people are shown
package assign
