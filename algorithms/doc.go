// Package algorithms holds the limiting algorithms and the ledger of rights, each as a Lua fragment that runs
// inside a region's Redis and beside it the pure Go twin that says the same thing.
//
// A script is a prelude (token.lua: the guard and the store's time; ledger.lua: rows and cells), the fragment of
// every algorithm (fixed_window.lua) and one body (decide.lua, lend.lua, credit.lua, inspect.lua); script.go puts
// them together. call.go and reply.go are the wire form of a script's arguments and answers. twin.go is a whole
// region's store in Go: property tests hold it equal to the Lua on an embedded and on a real Redis, and the
// protocol's tests run on it.
//
// The ledger, per bucket and cell k, in whole units, at region i with entitlement F:
//
//	S_i[k] = F_i + sum_j N[j->i][k] - sum_j N[i->j][k]      N[i->j] = R[i->j] - Q[j->i]
//
// R[i->j] (lent) and Q[i->j] (returned) are written only by i, and only raised; j keeps the maximum it heard.
// Rights in flight are missing, never doubled, so the shares of all regions never add up to more than the limit.
// It is a bounded counter (Balegas et al., "Extending Eventually Consistent Cloud Databases for Enforcing Numeric
// Invariants", 2015) in the spirit of escrow (O'Neil 1986) and the demarcation protocol (Barbara and
// Garcia-Molina 1992), issued anew for each cell.
//
// All times are microseconds of the store's clock, all amounts whole units; both stay at or below 2^51, so that
// the arithmetic of Redis' Lua, whose numbers are doubles, is exact.
//
// The package is pure: no clock, no goroutine, no random source, no I/O.
package algorithms
