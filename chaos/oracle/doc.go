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
// store. Per bucket and labelled cell, the cost admitted by all regions together
// must not exceed the limit. A label is worth nothing if a node may choose it
// freely, so each one is cross-checked: it must be the cell of the decision's own
// store time, and that time must lie between the sending and the seeing of the
// request on the judge's clock, give or take [Limit.ClockSlack]. An answer that
// fails either test is misplaced, and so is one that cannot be judged at all; a
// sequence number that a node used twice is a duplicate. Both are violations of
// honesty and fail the verdict, whatever the sums say.
//
// A request whose outcome is unknown (a timeout, a lost reply) may have been
// admitted, and has no label. It is charged to every cell it could have fallen
// in, from Sent - ClockSlack to Seen + ClockSlack. In a cell that is full anyway
// this alone exceeds the limit, although the request was most likely denied. A
// violation therefore says whether it is certain, that is, whether it stands
// without the unknown outcomes: [Verdict.Holds] counts every violation,
// [Verdict.Proven] only the certain ones.
//
// # False denials
//
// The pooled oracle is one limiter that owns the whole limit and needs no
// network. It is offered what all regions were offered, in order of the store
// time At, cell by cell, and admits each request in whole or not at all. False
// denials are the units that it admits from that sequence, less ours. The rule
// by which they are attributed:
//
//  1. An answer belongs to the phase in which it was sent, on the judge's clock.
//  2. A request that the pool admits and we denied counts +cost in its cell,
//     phase and region. One that we admitted and the pool did not counts -cost
//     there. The sum over a slot (cell, phase, region) is its net.
//  3. The false denials of a cell are the sum of its nets, but at least 0: what
//     one region was denied and another admitted later in the cell is not lost.
//  4. They are split among the phases in proportion to the net of each phase
//     where that is positive, and the part of a phase among its regions likewise,
//     in whole units by largest remainder. So the rows of a phase add up to its
//     total, the phases add up to the run, nothing is ever negative, and a cell
//     that lies in one phase counts there alone.
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
// # Other algorithms
//
// What an algorithm means by its limit is one entry of the table in rule.go: the
// cell of a time, the ceiling, and the pooled limiter. Callers name the algorithm
// in [Limit] and see no difference.
package oracle
