// Package algorithms holds the limiting algorithms and the ledger of rights. Each is a Lua fragment
// that runs inside a region's Redis, beside a pure Go twin that gives the same answers.
//
// A script has three parts. The prelude is token.lua (the guard and the store's time) and
// ledger.lua (rows and cells). Then come the fragments of all algorithms: fixed_window.lua,
// sliding_window_counter.lua, sliding_window_log.lua, and over rate.lua token_bucket.lua and
// leaky_bucket.lua. Last comes one body:
//   - decide.lua, settle.lua, reset.lua and inspect.lua serve callers of the API,
//   - lend.lua and credit.lua move rights between regions,
//   - assign.lua gives a node rights that it assigns to Envoys,
//   - recall.lua and restore.lua recover a bucket after a loss,
//   - book.lua charges what was admitted without the store.
//
// Four scripts concern the token alone: open.lua begins a generation, adopt.lua puts a document in
// force, note.lua keeps a text for a node, and beat.lua makes the store show its time.
//
// script.go assembles the scripts. terms.go says what an algorithm must know of a bucket. call.go
// and args.go hold the questions to the scripts, reply.go and parse.go the answers. twin.go is a
// whole region's store in Go, with twin_settle.go for what is
// settled and reset, twin_rights.go for what is lent and credited, and twin_assign.go for what is
// assigned. Property tests compare it with the Lua on an embedded and on a real Redis, and the protocol's tests run on it.
//
// The ledger, per bucket and cell k, in whole units, at region i with entitlement F:
//
//	S_i[k] = F_i + sum_j N[j->i][k] - sum_j N[i->j][k]      N[i->j] = R[i->j] - Q[j->i]
//
// Only region i writes R[i->j] (lent) and Q[i->j] (returned), and only raises them. Region j keeps
// the maximum it heard. Rights in flight are missing, never doubled, so the shares of all regions
// never add up to more than the limit.
//
// The cells of a fixed window may be the periods of a calendar. Scripts have no calendar: a call
// names when some periods begin, around the node's clock (args.go), and the script takes the one
// that holds the store's time. Nodes of one region may have different rules of a time zone. So a
// bucket of a calendar never goes back to the period before: what drops the rows of a period also
// moves the bucket's count of use on (fixed_window.lua, and keep in bucket.lua).
//
// For fixed windows that is all. The sliding kinds deduct the largest of three amounts for each
// peer: what is lent, what is promised for the next cell, and what was lent earlier, as long as use
// that it allowed may still count at the borrower. Each sliding kind has its inequality in its own
// file, and an exhaustive search among the tests.
//
// A bucket's rights are a rate, in units a window, and its level is settled cell by cell. Buckets
// also have burst rights Y[i->j]: they move capacity and the tokens in it for the rest of a cell.
//
// A cost that is known only afterwards is charged whole, whatever is left (LimitTarget.Always). What
// does not fit of it is owed: the cost less what was left, or 0. Without what is owed every history is
// one of the ledger above, so that costs less what was owed of them never exceed the limit, over all
// regions. Whoever owes admits nothing until the use counts no more, and lends nothing. What a fixed
// window owes ends with it. A bucket is kept until it is full again, and owes so much at most; what is
// charged beyond is forgiven. The searches charge two units at any time, of each kind but the
// leaky_bucket, whose turns are promises.
//
// A decision may be settled once, by what was used of it: settle.lua gives back the rest in the cell that
// it was charged in, as long as use of that cell counts, or charges what is above now, as if by
// LimitTarget.Always. After a loss nothing is given back: what was restored may not hold the charge.
//
// The ledger is a bounded counter (Balegas et al., "Extending Eventually Consistent Cloud Databases
// for Enforcing Numeric Invariants", 2015) in the spirit of escrow (O'Neil 1986) and the
// demarcation protocol (Barbara and Garcia-Molina 1992), issued anew for each cell.
//
// All times are microseconds of the store's clock, all amounts whole units. Both stay at or below
// 2^51, so that the arithmetic of Redis' Lua, whose numbers are doubles, is exact.
//
// The package is pure: no clock, no goroutine, no random source, no I/O.
package algorithms
