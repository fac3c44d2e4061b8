package callers

import (
	"context"
	"errors"
	"net/http"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quotad/quotad/policy"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/decide/receipts"
	"github.com/quotad/quotad/region/front/audit"
	"github.com/quotad/quotad/region/front/wire"
)

func (s *Server) settle(w http.ResponseWriter, r *http.Request) {
	wire.Answer(w, r, decodeSettle, func(ctx context.Context, q settlement) (any, error) {
		done, err := s.settled(ctx, q)
		if errors.Is(err, receipts.ErrRefused) {
			err = wire.Refuse(http.StatusConflict, err.Error())
		}
		return settledMessage(done), err
	})
}

// settlement says what was used of what a receipt is for.
type settlement struct {
	receipt string
	used    quantity.Units
}

// usedMissing is what is wrong with a settlement that does not say what was used.
var usedMissing = invalid.Fieldf("used", "is missing; say how many units were used, 0 if none were")

func settledMessage(done receipts.Settled) *quotadv1.SettleResponse {
	charges := wire.Each(done.Charges, func(c receipts.SettledCharge) *quotadv1.Settled {
		return &quotadv1.Settled{Limit: c.Limit, Back: int64(c.Back), Reason: c.Reason, Charged: int64(c.Charged), Owed: int64(c.Owed)}
	})
	return &quotadv1.SettleResponse{Repeated: done.Repeated, Used: int64(done.Used), Settled: charges}
}

func takenMessage(t admit.Taken) *quotadv1.TakeResponse {
	if t.Units == 0 {
		return &quotadv1.TakeResponse{}
	}
	return &quotadv1.TakeResponse{Units: int64(t.Units), Decision: wire.DecisionMessage(t.Decision),
		SpendWithin: durationpb.New(t.SpendWithin), Receipt: t.Receipt}
}

// settled settles what a receipt is for. A text that is no receipt of this region is no act, and is not
// written down.
func (s *Server) settled(ctx context.Context, q settlement) (receipts.Settled, error) {
	buckets, err := s.node.Receipt(q.receipt)
	if err != nil {
		return receipts.Settled{}, err
	}
	e := audit.Event{Act: audit.Settle, Buckets: audited(buckets)}
	for _, b := range buckets {
		if err := s.options.MayName(ctx, b.Domain); err != nil {
			s.options.Done(ctx, e, err)
			return receipts.Settled{}, err
		}
	}
	done, err := s.node.Settle(ctx, q.receipt, q.used)
	var back, more quantity.Units
	for _, c := range done.Charges {
		back, more = max(back, c.Back), max(more, c.Charged)
	}
	switch e.Units = int64(max(back, more)); {
	case done.Repeated:
		e.Detail, e.Units = "settled before, and not again", 0
	case more > 0:
		e.Detail = "charged beyond the reservation"
	case back > 0:
		e.Detail = "given back"
	}
	s.options.Done(ctx, e, err)
	return done, err
}

// audited names buckets for the audit log.
func audited(refs []policy.BucketRef) []audit.Bucket {
	all := make([]audit.Bucket, len(refs))
	for i, r := range refs {
		all[i] = audit.Bucket{Domain: r.Domain, Limit: r.Name, Key: map[string]string{}}
		for _, part := range r.Key {
			all[i].Key[part.Name] = part.Value
		}
	}
	return all
}
