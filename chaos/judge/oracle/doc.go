// Package oracle judges a recorded history of answers from all regions against one global limit,
// from outside. It imports nothing else of quotad, does not know about ledgers and transfers, and
// believes only those parts of an answer that it can check.
//
// It gives two results, which belong together. The [Verdict] reports whether the ceiling held: a
// limiter that gives every region the whole limit fails it. The [Judge.Summary] says how many
// requests were denied although the limit had room: a limiter that refuses everything passes the
// first and fails the second.
//
// # The ceiling
//
// Every decision carries the cell it was charged to and the time of its region's store. With limit
// L, window W and burst B, all regions together may admit in one bucket:
//
//	fixed_window            in each labelled cell, floor(t / W), at most L
//	sliding_window_counter  at each instant, e into window k, an estimate
//	                        U[k] + U[k-1] * (W - e) / W of at most L
//	sliding_window_log      in each real interval (t - W, t] at most L
//	token_bucket            what one bucket of B tokens, full at first and refilled
//	                        with L in W, gives without falling below zero
//	leaky_bucket            what keeps one queue, drained by L in W, at B or below
//
// Cells of a fixed window may be the periods of a [Calendar] instead.
//
// Only the fixed window is summed up by label. The others compare the store times of all regions as
// they are, without an allowance for clocks that are apart. So a limiter that is exact by its own
// clocks may exceed the limit here, by what its regions admit in the time by which their clocks
// differ.
//
// A label means nothing if a node may choose it freely, so each label is checked. It must be the
// cell of the decision's own store time (see [Limit.CellOf]). That time must lie between Sent and
// Seen on the judge's clock, give or take [Limit.ClockSlack]. An answer that fails either test is
// misplaced, and so is one that cannot be judged at all. A sequence number that a node used twice
// is a duplicate. Both are violations of honesty and fail the verdict, whatever the sums are.
//
// A request whose outcome is unknown (a timeout, a lost reply) may have been admitted, and has no
// label. A fixed window charges it to every cell it could have fallen in, from Sent - ClockSlack to
// Seen + ClockSlack. The other kinds count it in full during that interval, and as an admission
// that ages only after the interval. This is the worst that it can have been at each instant
// (timeline.go says why). In a cell that is full anyway, the unknown request alone exceeds the
// limit, although it was most likely denied. Therefore a violation reports whether it is certain, that
// is, whether it remains without the unknown outcomes: [Verdict.Holds] counts every violation,
// [Verdict.Proven] only the certain ones.
//
// # Classes
//
// Where a limit has classes ([Answer.Part]), an admitted request is held to the part that its class
// may use of the share that its region claims, by all that the region was seen to admit
// (classes.go).
//
// # False denials
//
// The pooled oracle is one limiter that owns the whole limit and needs no network. It is offered
// all requests of all regions, in order of the store time At, and admits each request in whole or
// not at all. False denials are the units that it admits of these requests, less the units that we
// admitted. The rules of attribution:
//
//  1. An answer belongs to the phase in which it was sent, on the judge's clock.
//  2. A request that the pool admits and we denied counts +cost in its period, phase and region.
//     One that we admitted and the pool did not counts -cost there. The sum over a slot (period,
//     phase, region) is its net.
//  3. Except for fixed windows, such a -cost counts in the previous period instead, as far as that
//     period still has lost units and the request's own period has none, in order of the store
//     time.
//  4. The false denials of a period are the sum of its nets, but at least 0: units that one region
//     denied and another admitted later in the period are not lost.
//  5. They are split among the phases in proportion to the positive nets of the phases, and the
//     part of a phase among its regions likewise, in whole units by largest remainder. So the rows
//     of a phase add up to its total, the phases add up to the run, no number is negative, and a
//     period that lies in one phase counts only there.
//
// A period is as long as an admission weighs on later ones. For a fixed window it is the cell. For
// the sliding kinds it is a window. For the buckets it is a window or the time to drain B,
// whichever is longer. It is never the cell of these kinds, which may be shorter. In these kinds
// the pool, having admitted what we denied, has less room for as long, and so denies what we then
// admit. The lost units come back later as a negative number, in the same period or in the next.
// Rule 3 deals with the next period. It looks back no further, because otherwise units admitted too
// much could hide denials of any age. A bucket under steady load can carry a difference for longer,
// and that then counts as lost. This error is to our disadvantage: in a run without unknown
// outcomes, the false denials are never less than what the pool admits less what we admitted.
//
// A request of unknown outcome is offered to the pool at the time it was sent and takes room there,
// but it counts neither +cost nor -cost. It can hide at most its own cost, which is why summaries
// print the unknown units as well.
//
// # Memory
//
// The judge keeps sums per cell, phase and region, and the sequence numbers as bits. It keeps
// single answers only if they were seen within the last [Limit.Settle], because regions answer out
// of order and the pool must be replayed in order. An answer that comes later is replayed out of
// order and counted in [Verdict.Late]. It counts in full towards the ceiling, which needs no order.
//
// For all kinds but the fixed window the judge also keeps all admissions, by microsecond and
// region, for as long as it lives. Each takes about 50 bytes, so give days of heavy traffic to
// several judges.
//
// # Other algorithms
//
// The meaning of an algorithm is one entry of the table in rule.go: the cell of a time, the
// ceiling, the pooled limiter and the words. Kinds that are bounded at each instant use one meter
// (meter.go) for both the ceiling and the pool. Callers name the algorithm in [Limit] and see no
// other difference.
package oracle
