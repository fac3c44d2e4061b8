package api

import (
	"time"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
)

// Explanation is quotad.v1.ExplainResponse as JSON.
type Explanation struct {
	Sentence    string            `json:"sentence"`
	Limit       string            `json:"limit"`
	Domain      string            `json:"domain"`
	Descriptors map[string]string `json:"descriptors"`
	Algorithm   string            `json:"algorithm,omitempty"`
	LimitUnits  int64             `json:"limit_units"`
	Window      Milliseconds      `json:"window_ms"`
	Used        int64             `json:"used"`
	Regions     []BucketView      `json:"regions"`
	Silent      []string          `json:"silent"` // regions that did not answer
}

// BucketView is a bucket in one region.
type BucketView struct {
	Region string `json:"region"`
	Node   string `json:"node"` // that told it
	Epoch  string `json:"epoch"`
	// Problem says why the store did not tell what follows; absent: it did.
	Problem     string        `json:"problem,omitempty"`
	Entitlement int64         `json:"entitlement"`
	Share       int64         `json:"share"`
	Used        int64         `json:"used"`
	Free        int64         `json:"free"`
	Cell        quantity.Cell `json:"cell"`
	Rights      []Rights      `json:"rights"` // of all cells that count, without the burst
	// Now is what a request of one unit would be told; absent if the store did not tell.
	Now         *BucketNow        `json:"now,omitempty"`
	Last        *LastRequest      `json:"last,omitempty"` // absent: no node remembers one
	Degraded    []DegradedTowards `json:"degraded"`
	ClosedUntil time.Time         `json:"closed_until,omitzero"` // after a loss of the store's data
	Prefetched  int64             `json:"prefetched_units"`
	Remember    []string          `json:"remember_denial"` // nodes
	// Assigned is what nodes hold of the share to assign it to Envoys, and Envoys what they told
	// them.
	Assigned int64       `json:"assigned,omitempty"`
	Envoys   []EnvoyView `json:"envoys,omitempty"`
}

// EnvoyView is what one Envoy was told to admit by itself.
type EnvoyView struct {
	Node   string       `json:"node"` // that its stream goes to
	Stream int64        `json:"stream"`
	Rate   int64        `json:"rate"` // tokens a second; 0: it has no assignment
	Burst  int64        `json:"burst"`
	Left   Milliseconds `json:"left_ms"`
	// WantsMilli is in thousandths of a request a second; absent: not known yet.
	WantsMilli *int64 `json:"wants_milli,omitempty"`
	Silent     bool   `json:"silent,omitempty"` // it missed two reports
	Gone       bool   `json:"gone,omitempty"`   // its stream is over
}

// BucketNow is what a request of one unit would be told.
type BucketNow struct {
	Allowed    bool          `json:"allowed"`
	Reason     admit.Reason  `json:"reason"`
	Remaining  int64         `json:"remaining"`
	ResetAfter *Milliseconds `json:"reset_after_ms,omitempty"`
	RetryAfter *Milliseconds `json:"retry_after_ms,omitempty"`
}

// LastRequest is what became of the last request on a bucket.
type LastRequest struct {
	At         time.Time    `json:"at"`
	Node       string       `json:"node"`
	Allowed    bool         `json:"allowed"`
	Reason     admit.Reason `json:"reason"`
	FromMemory bool         `json:"from_memory,omitempty"`
}

// DegradedTowards is a region that has not answered for over 3 s.
type DegradedTowards struct {
	Region string    `json:"region"`
	Since  time.Time `json:"since,omitzero"` // absent: it never answered
}

// reasonsOf has what messages call each reason.
var reasonsOf = func() map[quotadv1.Reason]admit.Reason {
	all := map[quotadv1.Reason]admit.Reason{}
	for text, number := range reasons {
		all[number] = text
	}
	return all
}()

func newExplanation(e *quotadv1.ExplainResponse) Explanation {
	return Explanation{Sentence: e.GetSentence(), Limit: e.GetLimit(), Domain: e.GetDomain(),
		Descriptors: e.GetDescriptors(), Algorithm: e.GetAlgorithm(), LimitUnits: e.GetLimitUnits(),
		Window: Milliseconds(e.GetWindow().AsDuration()), Used: e.GetUsed(),
		Regions: each(e.GetRegions(), newBucketView), Silent: listed(e.GetSilent())}
}

func newBucketView(v *quotadv1.BucketView) BucketView {
	l := v.GetLedger()
	a := BucketView{Region: v.GetRegion(), Node: v.GetNode(), Epoch: v.GetEpoch(),
		Problem: v.GetProblem(), Entitlement: l.GetEntitlement(), Share: l.GetShare(),
		Used: l.GetUsed(), Free: l.GetFree(), Cell: quantity.Cell(l.GetCell()),
		Last: newLastRequest(v.GetLast()), ClosedUntil: timeOf(v.GetClosedUntil()),
		Prefetched: v.GetPrefetchedUnits(), Remember: listed(v.GetRememberDenial()),
		Assigned: l.GetAssigned()}
	a.Envoys = each(v.GetEnvoys(), func(e *quotadv1.EnvoyView) EnvoyView {
		return EnvoyView{Node: e.GetNode(), Stream: e.GetStream(), Rate: e.GetRate(),
			Burst: e.GetBurst(), Left: Milliseconds(e.GetLeft().AsDuration()),
			WantsMilli: e.WantsMilli, Silent: e.GetSilent(), Gone: e.GetGone()}
	})
	a.Rights = each(l.GetRights(), func(r *quotadv1.Rights) Rights {
		return Rights{Cell: quantity.Cell(r.GetCell()), Region: r.GetRegion(),
			Lent: quantity.Units(r.GetLent()), Returned: quantity.Units(r.GetReturned()),
			Borrowed: quantity.Units(r.GetBorrowed()), Regained: quantity.Units(r.GetRegained())}
	})
	a.Degraded = each(v.GetDegraded(), func(d *quotadv1.DegradedTowards) DegradedTowards {
		return DegradedTowards{d.GetRegion(), timeOf(d.GetSince())}
	})
	if d := v.GetNow(); d != nil {
		a.Now = &BucketNow{Allowed: d.GetAllowed(), Reason: reasonsOf[d.GetReason()],
			Remaining: d.GetRemaining(), ResetAfter: milliseconds(d.GetResetAfter()),
			RetryAfter: milliseconds(d.GetRetryAfter())}
	}
	return a
}

// newLastRequest returns nil for nil.
func newLastRequest(l *quotadv1.LastRequest) *LastRequest {
	if l == nil {
		return nil
	}
	return &LastRequest{l.GetAt().AsTime(), l.GetNode(), l.GetAllowed(), reasonsOf[l.GetReason()],
		l.GetFromMemory()}
}
