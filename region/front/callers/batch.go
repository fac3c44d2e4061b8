package callers

import (
	"context"
	"net/http"
	"time"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/base/door"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/wire"
)

const (
	// maxInBatch bounds the requests of a batch, over gRPC and HTTP. With more the call is refused as
	// bad input, and nothing is charged. Each request has its own place in the node's queue.
	maxInBatch = 1000
	// maxBatchBytes bounds the body of a batch over HTTP.
	maxBatchBytes = 1 << 20
)

// batchSize returns an *invalid.Field if a call may not have so many requests.
func batchSize(requests int) error {
	const field = "requests"
	switch {
	case requests == 0:
		return invalid.Fieldf(field, "has no requests; send 1 to %d", maxInBatch)
	case requests > maxInBatch:
		return invalid.Fieldf(field, "has more than %d requests; send at most as many in a call",
			maxInBatch)
	}
	return nil
}

// CheckBatch implements quotad.v1.QuotaService. The requests are decided together, so that they
// share round trips to the store, and each by itself, so some may be undecided. One that is wrong
// is answered alone. If the caller gives up, some requests may have been charged. A batch that a
// busy node does not read is UNAVAILABLE as a whole.
func (s *service) CheckBatch(ctx context.Context,
	m *quotadv1.CheckBatchRequest) (*quotadv1.CheckBatchResponse, error) {
	if err := batchSize(len(m.Requests)); err != nil {
		return nil, toStatus(err)
	}
	all := make([]admit.Request, len(m.Requests))
	caller := callerOf(ctx)
	for i, one := range m.Requests {
		all[i] = charge(one)
		all[i].Caller = caller
	}
	s.refuseForeign(ctx, all)
	decided, err := s.node.CheckBatch(ctx, all)
	if err != nil {
		return nil, failed(ctx, err)
	}
	return &quotadv1.CheckBatchResponse{Decisions: wire.Each(decided, wire.DecisionMessage)}, nil
}

// refuseForeign marks the requests of a batch that name domains which their caller may not name.
// They are answered alone, and charge nothing.
func (s *Server) refuseForeign(ctx context.Context, all []admit.Request) {
	if s.options.Guard == nil {
		return
	}
	for i := range all {
		if q := &all[i]; q.Unread == nil && s.options.MayName(ctx, q.Domain) != nil {
			*q = admit.Request{Unread: invalid.Fieldf("domain", "is none that this caller may name; see its domains in the roles file")}
		}
	}
}

// decisions is the answer to a batch over HTTP.
type decisions struct {
	Decisions []*Decision `json:"decisions"` // in the order of the requests
}

// checkBatch answers 200 for every batch that was decided, whatever the decisions are.
func (s *Server) checkBatch(w http.ResponseWriter, r *http.Request) {
	caller := door.HostOf(r.RemoteAddr)
	leave := s.batches.take(caller)
	if leave == nil {
		s.work.Shed("http")
		select {
		case <-time.After(shedPause):
		case <-r.Context().Done():
		}
		writeFailure(w, errShed)
		return
	}
	defer leave()
	decided, ok := inHand(s, w, r, wire.SaysJSON, maxBatchBytes, decodeBatch,
		func(ctx context.Context, wait time.Duration, _ *door.Held,
			all []admit.Request) ([]admit.Decision, error) {
			for i := range all {
				all[i].Caller, all[i].Wait = caller, wait
			}
			s.refuseForeign(r.Context(), all)
			return s.node.CheckBatch(ctx, all)
		})
	if ok {
		wire.Write(w, "application/json", http.StatusOK, decisions{wire.Each(decided, newDecision)})
	}
}
