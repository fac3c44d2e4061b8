package client

import (
	"context"
	"fmt"
	"time"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// Request asks whether a unit of work may be served.
type Request struct {
	Domain      string
	Descriptors map[string]string
	Cost        int64 // units, 1 to 2^51; 0 counts as 1
	// ID names the request, for a caller that may send it twice. Sent again within a minute after
	// it was admitted, it is answered as the first time and not charged again. The party that is
	// limited must not choose it.
	ID      string
	Receipt bool // whether the decision should carry a receipt, for Settle
	// Question asks whether a use may begin whose cost is known only afterwards, when Report charges
	// it. Nothing is charged. It has neither ID nor Receipt.
	Question bool
}

// Decision answers a request.
type Decision struct {
	Allowed    bool
	Reason     quotadv1.Reason
	Limit      string // the limit that decided; empty if none applies
	Algorithm  string // of that limit
	LimitUnits int64  // of that limit, over all regions
	// Remaining is the units left in the region after the request. FromMemory: of what the client
	// knows.
	Remaining  int64
	ResetAfter time.Duration // until the limit is whole again, if nothing else happens
	// RetryAfter of a denied request is when it may come again: when the region's rights suffice or,
	// if that is sooner, when units of other regions may be there. 0: never, or not known.
	RetryAfter  time.Duration
	Delay       time.Duration // admitted by a leaky bucket: serve the request after this time
	Cell        int64         // number of the cell that the request was decided in
	AtUs        int64         // the store's time, us since 1970. FromMemory: or a little less
	Entitlement int64         // the region's fixed split of the limit, in units
	Share       int64         // units of the cell that the region holds
	Node        string        // that decided. FromMemory: that the client knows it from
	Region      string
	Degraded    bool     // a region of the limit has not answered that node for over 3 s
	Shadowed    []string // shadow limits that would have denied; not to be changed
	Receipt     string   // for Settle, if it was asked for
	Repeated    bool     // decided before, under the same Request.ID; not charged now
	FromMemory  bool     // the client decided by itself
	Owed        int64    // of Report: what did not fit, and is charged all the same
	Class       string   // that the request has under Limit; empty: none
	Kept        int64    // units that are free beside Remaining, kept for classes with a larger part
	// Unreachable is whether no node could be asked: Options.OnUnreachable decided. Then only
	// Allowed, RetryAfter and Reason are set too. The reason is REASON_STORE_FAILURE_ALLOWED for
	// Allow, REASON_STORE_FAILURE for Deny and REASON_STORE_FAILURE_LOCAL for Local.
	Unreachable bool
	Epoch       string // of the limits document that was in force; empty: not known
	// Limits are all limits that applied, if there were several. Not to be changed.
	Limits []LimitState
	Window time.Duration // of Limit; 0: not known
	Unit   string        // what Limit counts, such as tokens; empty: not known
}

// LimitState is what one of several limits said of a request.
type LimitState struct {
	Limit      string
	Algorithm  string
	LimitUnits int64         // that the limit allows in a window, over all regions
	Window     time.Duration // of the limit
	Admits     bool          // whether the limit had room for the request
	Shadow     bool          // whether the limit never denies
	// Counted is whether the store or the node counted. Else the next two are 0 and not known.
	Counted     bool
	Remaining   int64         // units left in the region after the request
	ResetAfter  time.Duration // as in Decision
	RetryAfter  time.Duration // as in Decision; 0 where the limit admits
	Entitlement int64         // the region's fixed split of the limit, in units
	Share       int64         // units of the cell that the region holds
	Degraded    bool          // as in Decision
	Owed        int64         // as in Decision
	Class       string        // as in Decision
	Kept        int64         // as in Decision
	Unit        string        // what the limit counts, as in Decision
}

// Check asks a node about a request. The error is a gRPC status, wrapped. If no node can be asked
// Options.OnUnreachable decides.
func (c *Client) Check(ctx context.Context, q Request) (Decision, error) {
	m := &quotadv1.CheckRequest{Domain: q.Domain, Descriptors: q.Descriptors, RequestId: q.ID,
		Receipt: q.Receipt, Question: q.Question}
	if q.Cost != 0 {
		m.Cost = &q.Cost
	}
	return c.check(ctx, m)
}

func (c *Client) check(ctx context.Context, m *quotadv1.CheckRequest) (Decision, error) {
	if c.invalid != nil {
		return Decision{}, c.invalid
	}
	if err := validate(m); err != nil {
		return Decision{}, fmt.Errorf("quotad: check: %w", err)
	}
	ends := time.Now().Add(c.options.Timeout)
	call, cancel := context.WithDeadline(ctx, ends)
	defer cancel()
	c.counters.asked.Add(1)
	d, err := c.batches.check(call, m)
	if err == nil {
		return decisionOf(d), nil
	}
	failed := fmt.Errorf("quotad: check: %w", err)
	if unreachable(ctx, ends, err) {
		return c.decideAlone(m, failed)
	}
	return Decision{}, failed
}

// Report charges the Cost of a use that is over, 1 to 2^51. Limits that say charge: always are charged
// all of it, whatever is left: at least one must apply. The decision denies as long as anything is owed.
// After an error the cost may have been charged; with an ID it can be reported again. The error is a
// gRPC status, wrapped.
func (c *Client) Report(ctx context.Context, q Request) (Decision, error) {
	if c.invalid != nil {
		return Decision{}, c.invalid
	}
	call, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	c.counters.asked.Add(1)
	r, err := c.rpc.Report(call, &quotadv1.ReportRequest{Domain: q.Domain, Descriptors: q.Descriptors,
		Cost: q.Cost, RequestId: q.ID})
	if err != nil {
		return Decision{}, fmt.Errorf("quotad: report: %w", err)
	}
	return decisionOf(r.GetDecision()), nil
}

// Settlement is what came of settling a reservation.
type Settlement struct {
	Used     int64 // by which it was settled: the use that was told first
	Repeated bool  // it had been settled before; this is the outcome of then
	Charges  []SettledCharge
}

// SettledCharge is what came of one limit that was charged, in units.
type SettledCharge struct {
	Limit   string
	Back    int64  // given back
	Reason  string // why nothing was given back or charged; empty: something was, or nothing was due
	Charged int64  // charged beyond the reservation
	Owed    int64  // what of that did not fit; it is charged all the same
}

// Settle settles a decision that was asked for with a receipt by the units that were used of its cost, 0 to
// 2^51: what was not used is given back, what was used beyond is charged, whatever is left. It is
// idempotent. What is not settled counts as used, and so does what is settled too late (settle_within). The
// error is a gRPC status, wrapped.
func (c *Client) Settle(ctx context.Context, receipt string, used int64) (Settlement, error) {
	if c.invalid != nil {
		return Settlement{}, c.invalid
	}
	call, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	r, err := c.rpc.Settle(call, &quotadv1.SettleRequest{Receipt: receipt, Used: &used})
	if err != nil {
		return Settlement{}, fmt.Errorf("quotad: settle: %w", err)
	}
	s := Settlement{Used: r.GetUsed(), Repeated: r.GetRepeated()}
	for _, m := range r.GetSettled() {
		s.Charges = append(s.Charges, SettledCharge{Limit: m.GetLimit(), Back: m.GetBack(), Reason: m.GetReason(),
			Charged: m.GetCharged(), Owed: m.GetOwed()})
	}
	return s, nil
}

func decisionOf(m *quotadv1.Decision) Decision {
	return Decision{Allowed: m.GetAllowed(), Reason: m.GetReason(), Limit: m.GetLimit(), Algorithm: m.GetAlgorithm(),
		LimitUnits: m.GetLimitUnits(), Remaining: m.GetRemaining(),
		ResetAfter: m.GetResetAfter().AsDuration(), RetryAfter: m.GetRetryAfter().AsDuration(),
		Delay: m.GetDelay().AsDuration(), Cell: m.GetCell(), AtUs: m.GetAtUs(),
		Entitlement: m.GetEntitlement(), Share: m.GetShare(), Node: m.GetNode(),
		Region: m.GetRegion(), Degraded: m.GetDegraded(), Shadowed: m.GetShadowed(),
		Receipt: m.GetReceipt(), Repeated: m.GetRepeated(), Epoch: m.GetEpoch(), Owed: m.GetOwed(), Class: m.GetClass(), Kept: m.GetKept(),
		Limits: limitStates(m.GetLimits()), Window: m.GetWindow().AsDuration(), Unit: m.GetUnit()}
}

func limitStates(all []*quotadv1.LimitState) []LimitState {
	if len(all) == 0 {
		return nil
	}
	states := make([]LimitState, len(all))
	for i, m := range all {
		states[i] = LimitState{Limit: m.GetLimit(), Algorithm: m.GetAlgorithm(),
			LimitUnits: m.GetLimitUnits(), Window: m.GetWindow().AsDuration(),
			Admits: m.GetAdmits(), Shadow: m.GetShadow(), Counted: m.Remaining != nil,
			Remaining: m.GetRemaining(), ResetAfter: m.GetResetAfter().AsDuration(),
			RetryAfter: m.GetRetryAfter().AsDuration(), Entitlement: m.GetEntitlement(),
			Share: m.GetShare(), Degraded: m.GetDegraded(), Owed: m.GetOwed(), Class: m.GetClass(), Kept: m.GetKept(),
			Unit: m.GetUnit()}
	}
	return states
}
