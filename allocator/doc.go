// Package allocator decides who may admit how much: what each region is entitled to, what each region needs, and
// what a region keeps when another asks. Its words are the project's words, in code, configuration, metrics and
// documentation alike:
//
//	limit        an entry of the policy document: so many units in a window
//	key          the entity a limit counts: an account, a tenant, an address
//	bucket       one limit applied to one key
//	region       a place with a store of its own; several nodes may serve one region
//	weight       a region's part in the fixed split of a limit
//	entitlement  F, a region's fixed split of the limit, in units; over all regions the sum is the limit exactly
//	cell         a labelled slice of time, number k; for fixed windows and sliding counters the window itself,
//	             floor(t / W); for logs a tenth of it or a second, for token buckets a second, for leaky buckets
//	             a fifth of it, in whole seconds from one to ten (algorithms.CellLength)
//	rights       units a region may admit in a cell; of a bucket, the rate at which it is refilled or served
//	burst        what a bucket holds: tokens, or units that wait; burst rights are capacity and the tokens in it
//	home mode    a limit too small to be split belongs whole to one region for each key
//	transfer     rights moved from a lender to a borrower, for one cell
//	share        S, the rights a region holds now: S = F + borrowed - returned - lent + regained
//	spare        what a region would lend if it were asked
//	hint         a gossiped, untrusted report of a region's use; it enters the plan and nothing else
//	demand       units a second that callers ask of a region, whether they were admitted or denied
//	epoch        version and digest of the policy document in force
//	degraded     towards a peer region: its last answer is older than 3 s; a decision is degraded when any region
//	             of its limit is; derived from ages alone
//	false denial units a single pooled limiter would have admitted from the same requests, less ours
//
// Start with plan.go: what a region needs, what it asks for and what it keeps, as functions of plain numbers. Package
// exchange below is the protocol that carries this out. It decides besides when and of whom to ask (borrower.go), for how
// much (amount.go), what a lender keeps back for chance and when it will have more (lender.go). The ledger that makes any
// plan safe is in package algorithms.
//
// The package is pure: no clock, no goroutine, no random source, no logger, no I/O and no floating point. Amounts
// are whole units, times microseconds, rates thousandths of a unit per second.
package allocator
