// Package allocator is the plan: how the quota of a limit is divided between regions, how much a
// region asks other regions for and when, and how much it keeps when another region asks. Every
// formula of the plan is here, as a function of plain values. Package exchange, below this one,
// is the protocol that asks these functions and sends the messages. Nothing here can break a
// limit: the ledger protects it, in package algorithms.
//
// The files, in the order of a transfer:
//
//	entitlement.go  the fixed split of a limit over regions, and home mode
//	demand.go       how much callers ask for now
//	frame.go        what a region expects of a cell, by the kind of the limit
//	outlook.go      how much will count, and when a share runs out
//	waterfill.go    a fair division of a cell over all regions
//	need.go         how much a region asks for
//	divide.go       how much of that it asks of each peer
//	nodes.go        a node's part of what its region may assign to Envoys
//	lend.go         how much the lender keeps, and what it says it can spare
//	timing.go       when to ask, when to ask again, how long hints are believed
//	bounds.go       how much above the limit a mishap can admit at most
//	mishaps.go      the formulas of that, mishap by mishap
//
// The five algorithms (kinds) differ in a few traits. One table holds them: algorithms.Traits.
//
// The words below are used in code, configuration, metrics and documentation alike:
//
//	limit        an entry of the policy document: so many units in a window
//	key          the entity a limit counts: an account, a tenant, an address
//	bucket       one limit applied to one key
//	region       a place with a store of its own; several nodes may serve one region
//	peer         another region
//	mate         another node of the same region
//	weight       decides a region's part in the fixed split of a limit
//	entitlement  F, a region's fixed split of the limit, in units; all regions' add up to the limit
//	cell         a numbered slice of time. For fixed windows and sliding counters it is the window,
//	             which may be a day, week, month or year of a calendar.
//	             For logs it is a tenth of the window or a second, whichever is longer, but no
//	             longer than the window. For token buckets it is a second; for leaky buckets a
//	             fifth of the window, in whole seconds from one to ten (algorithms.CellLength).
//	rights       units that a region may admit in a cell; of token and leaky buckets, the rate at
//	             which they are refilled or drained
//	burst        what a bucket holds: tokens, or units that wait. Burst rights are that capacity
//	             and the tokens in it.
//	share        S, the rights a region holds now: S = F + borrowed - returned - lent + regained
//	transfer     rights moved from a lender to a borrower, for one cell
//	spare        units that a region would lend if it were asked
//	hint         a gossiped report of a region's use. It is not trusted: the plan reads it, the
//	             ledger does not.
//	demand       units a second that callers ask of a region, admitted or denied
//	epoch        version and digest of the policy document in force
//	degraded     a node is degraded towards a peer whose last answer is older than 3 s. A decision
//	             is degraded if its node is degraded towards any region of the limit.
//	false denial units that a region denied, and that one limiter for all regions would have
//	             admitted
//
// The metaphors:
//
//	ledger       the rows that say who lent whom how much of a cell. They are only ever raised, so
//	             a message that is lost, late or repeated does no harm (package algorithms).
//	twin         a second implementation in Go of some part of the system. Tests compare the two,
//	             and simulations use it: the scripts of a store (algorithms.Twin)
//	oracle       the judge of tests and simulations: it recomputes from outside what may be
//	             admitted, and shares no code with what it judges (chaos/judge/oracle)
//	mutant       the source with one mistake put in on purpose; some test must fail on it
//	             (chaos/mutants)
//	home mode    a limit too small to be split: for each key it belongs whole to one region, and
//	             the others borrow it unit by unit
//	water-fill   a fair division: each region first gets what it wants of its entitlement, and
//	             what is left over goes to the others that want more, by their entitlements
//	tail         the last units of a long cell, a few in each of several regions
//
// The package is pure: no clock, no goroutine, no random source, no logger, no I/O and no floating
// point. Amounts are whole units, times microseconds, rates thousandths of a unit per second.
package allocator
