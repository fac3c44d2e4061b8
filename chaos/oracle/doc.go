// Package oracle judges a recorded history of answers from all regions against
// one global limit, from outside: it imports nothing else of quotad, knows no
// ledger and no transfer, and believes of an answer only what it can check.
//
// It says two things, which belong together. The [Verdict] says whether the
// ceiling held: a limiter that gives every region the whole limit fails it. The
// [Judge.Summary] says how many requests were denied although the limit had
// room: a limiter that refuses everything passes the first and fails this one.
//
// # The ceiling
//
// Every decision carries the cell it was charged to and the time of its region's
// store. With L the limit, W the window and B the burst, all regions together may
// in one bucket admit so much:
//
//	fixed_window            in each labelled cell, floor(t / W), at most L
//	sliding_window_counter  at each instant, e into window k, an estimate
//	                        U[k] + U[k-1] * (W - e) / W of at most L
//	sliding_window_log      in each real interval (t - W, t] at most L
//	token_bucket            what one bucket of B tokens, full at first and refilled
//	                        with L in W, gives without falling below zero
//	leaky_bucket            what keeps one queue, drained by L in W, at B or below
//
// Only the fixed window is summed up by label. The others compare the store times
// of all regions as they are, and clocks that are apart are not forgiven: a
// limiter that is exact by its own clocks may be seen to exceed here by what its
// regions admit in the difference.
//
// A label is worth nothing if a node may choose it freely, so each one is
// cross-checked: it must be the cell of the decision's own store time (see
// [Limit.CellOf]), and that time must lie between the sending and the seeing of
// the request on the judge's clock, give or take [Limit.ClockSlack]. An answer that
// fails either test is misplaced, and so is one that cannot be judged at all; a
// sequence number that a node used twice is a duplicate. Both are violations of
// honesty and fail the verdict, whatever the sums say.
//
// A request whose outcome is unknown (a timeout, a lost reply) may have been
// admitted, and has no label. It is charged to every cell it could have fallen
// in, from Sent - ClockSlack to Seen + ClockSlack; by the other kinds it is
// counted in full from the one to the other, and as an old admission only after
// that, which is the worst that it can have been at each instant (timeline.go
// says why). In a cell that is full anyway this alone exceeds the limit, although
// the request was most likely denied. A violation therefore says whether it is
// certain, that is, whether it stands without the unknown outcomes:
// [Verdict.Holds] counts every violation, [Verdict.Proven] only the certain ones.
//
// # False denials
//
// The pooled oracle is one limiter that owns the whole limit and needs no
// network. It is offered what all regions were offered, in order of the store
// time At, and admits each request in whole or not at all. False denials are the
// units that it admits from that sequence, less ours. The rule by which they are
// attributed:
//
//  1. An answer belongs to the phase in which it was sent, on the judge's clock.
//  2. A request that the pool admits and we denied counts +cost in its period,
//     phase and region. One that we admitted and the pool did not counts -cost
//     there. The sum over a slot (period, phase, region) is its net.
//  3. Except for fixed windows, such a -cost counts in the period before instead,
//     as far as that has still lost something and its own has not, in order of
//     the store time.
//  4. The false denials of a period are the sum of its nets, but at least 0: what
//     one region was denied and another admitted later in the period is not lost.
//  5. They are split among the phases in proportion to the net of each phase
//     where that is positive, and the part of a phase among its regions likewise,
//     in whole units by largest remainder. So the rows of a phase add up to its
//     total, the phases add up to the run, nothing is ever negative, and a period
//     that lies in one phase counts there alone.
//
// A period is as long as an admission weighs on later ones. For a fixed window
// that is the cell. For the sliding kinds it is a window, and for the buckets a
// window or the time to drain B, whichever is longer: never their cells, which may
// be shorter. In these kinds the pool, having admitted what we denied, has less
// room for as long, and so denies what we then admit: the lost units come back as
// a negative later, in the same period or, across its end, in the next. That is
// what rule 3 is for. It looks back no further, because units admitted too much
// would else hide denials of any age; a bucket under steady load can carry a
// difference for longer, and that then counts as lost. The error is on our
// unfavourable side: over a run without unknown outcomes, false denials are never
// less than what the pool admits less ours.
//
// A request of unknown outcome is offered to the pool at the time it was sent and
// takes room there, but is neither a false denial nor the contrary of one. It can
// so hide at most its own cost, which is why summaries print it beside.
//
// # Memory
//
// The judge keeps sums per cell, phase and region, the sequence numbers as bits,
// and of single answers only those seen within the last [Limit.Settle], because
// regions answer out of order and the pool must be replayed in order. An answer
// that comes later is replayed out of its order and counted in [Verdict.Late]; it
// counts in full towards the ceiling, which needs no order.
//
// For all kinds but the fixed window it also keeps what was admitted, by
// microsecond and region, about 50 bytes for each and for as long as it lives:
// give days of heavy traffic to several judges.
//
// # Other algorithms
//
// What an algorithm means by its limit is one entry of the table in rule.go: the
// cell of a time, the ceiling, the pooled limiter and the words. For kinds that
// are bounded at each instant the ceiling and the pool are made of one meter
// (meter.go). Callers name the algorithm in [Limit] and see no difference.
package oracle
