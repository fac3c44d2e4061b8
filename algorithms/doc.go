// Package algorithms holds the limiting algorithms and the ledger of rights, each as a Lua fragment that runs
// inside a region's Redis and beside it the pure Go twin that says the same thing.
//
// A script is a prelude (token.lua: the guard and the store's time; ledger.lua: rows and cells), the fragment of
// every algorithm (fixed_window.lua, sliding_window_counter.lua, sliding_window_log.lua, and over rate.lua
// token_bucket.lua and leaky_bucket.lua) and one body: decide.lua, refund.lua, reset.lua and inspect.lua for callers of
// the API, lend.lua and credit.lua for rights on their way, recall.lua and restore.lua after a loss, and book.lua for what
// was admitted without the store. Four scripts are of the token alone: open.lua begins a generation, adopt.lua puts a
// document in force, note.lua keeps a word of a node, and beat.lua has the store show its time. script.go puts them
// together. terms.go says what an algorithm must know of a bucket; call.go and args.go are what a script is asked, reply.go
// and parse.go what it answers. twin.go is a whole region's store in Go: property
// tests hold it equal to the Lua on an embedded and on a real Redis, and the protocol's tests run on it.
//
// The ledger, per bucket and cell k, in whole units, at region i with entitlement F:
//
//	S_i[k] = F_i + sum_j N[j->i][k] - sum_j N[i->j][k]      N[i->j] = R[i->j] - Q[j->i]
//
// R[i->j] (lent) and Q[i->j] (returned) are written only by i, and only raised; j keeps the maximum it heard.
// Rights in flight are missing, never doubled, so the shares of all regions never add up to more than the limit.
// For fixed windows that is all. The sliding kinds deduct, for each peer, the most of what is lent, what is promised for
// the next cell, and what was lent before as long as use that it allowed may still count at the borrower (each has its
// inequality in its own file, and an exhaustive search among the tests). A bucket's rights are a rate, units a window,
// and its level is settled cell by cell; beside them Y[i->j], burst rights, move capacity and the tokens in it for the
// rest of a cell.
//
// It is a bounded counter (Balegas et al., "Extending Eventually Consistent Cloud Databases for Enforcing Numeric
// Invariants", 2015) in the spirit of escrow (O'Neil 1986) and the demarcation protocol (Barbara and
// Garcia-Molina 1992), issued anew for each cell.
//
// All times are microseconds of the store's clock, all amounts whole units; both stay at or below 2^51, so that
// the arithmetic of Redis' Lua, whose numbers are doubles, is exact.
//
// The package is pure: no clock, no goroutine, no random source, no I/O.
package algorithms
