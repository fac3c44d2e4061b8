package callers

import (
	"context"
	"errors"
	"io"
	"time"

	rlqsv3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quotad/quotad/region/decide/envoys"
	"github.com/quotad/quotad/region/front/wire"
)

// rlqs is envoy.service.rate_limit_quota.v3.RateLimitQuotaService: Envoys report what they
// admitted, and are told what they may admit by themselves. A bucket id is taken as the descriptors
// of a request. The domain is that of a stream's first message.
//
// Envoy knows token buckets and blanket rules alone. It reads whole seconds of a time to live and
// of a fill interval, and takes a bucket for the same only if its interval does not differ. So the
// interval is always one second. It takes no action without a bucket id, so that a report of an
// empty one has no answer.
type rlqs struct {
	rlqsv3.UnimplementedRateLimitQuotaServiceServer
	*Server
}

type rlqsStream = grpc.BidiStreamingServer[rlqsv3.RateLimitQuotaUsageReports,
	rlqsv3.RateLimitQuotaResponse]

// StreamRateLimitQuotas implements envoy.service.rate_limit_quota.v3.RateLimitQuotaService.
func (s *rlqs) StreamRateLimitQuotas(stream rlqsStream) error {
	first, err := stream.Recv()
	switch {
	case errors.Is(err, io.EOF): // it has nothing to say
		return nil
	case err != nil:
		return err
	}
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	if err := s.options.MayName(ctx, first.GetDomain()); err != nil {
		return toStatus(err)
	}
	open, err := s.node.Envoys().Open(first.GetDomain())
	switch {
	case errors.Is(err, envoys.ErrTooMany):
		return status.Error(codes.ResourceExhausted, err.Error()+"; connect to another node")
	case err != nil:
		return status.Error(codes.Unavailable, err.Error()+"; connect to another node")
	}
	defer open.Close()
	open.Report(usagesOf(first))
	go func() { cancel(s.receive(stream, open)) }()
	defer context.AfterFunc(s.life.Ending(), func() { cancel(wire.ErrEnding) })()
	return s.send(ctx, stream, open)
}

// receive passes on reports until the stream is over, and returns why. It ends soon after the
// handler, which has closed the stream by then.
func (s *rlqs) receive(stream rlqsStream, open *envoys.Stream) (err error) {
	defer s.panics.Recover("StreamRateLimitQuotas", &err)
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		open.Report(usagesOf(m))
	}
}

// send sends assignments until ctx ends. When the server ends it has them end first.
func (s *rlqs) send(ctx context.Context, stream rlqsStream, open *envoys.Stream) error {
	for {
		all, err := open.Next(ctx)
		if err != nil {
			break
		}
		if err := stream.Send(assignmentsMessage(all)); err != nil {
			return err
		}
	}
	switch cause := context.Cause(ctx); {
	case stream.Context().Err() != nil: // the Envoy has gone, or was silent for too long
		return status.FromContextError(stream.Context().Err()).Err()
	case errors.Is(cause, io.EOF): // it ended the stream
		return nil
	case !errors.Is(cause, wire.ErrEnding):
		return cause
	}
	ending, cancel := context.WithTimeout(stream.Context(), drainWithin)
	defer cancel()
	s.node.Envoys().Drain()
	for {
		all, err := open.Next(ending)
		if err != nil {
			return status.Error(codes.Unavailable, wire.ErrEnding.Error()+"; connect to another node")
		}
		if err := stream.Send(assignmentsMessage(all)); err != nil {
			return err
		}
	}
}

// drainWithin is how long a stream may take to tell its Envoy that the node ends.
const drainWithin = 200 * time.Millisecond

func usagesOf(m *rlqsv3.RateLimitQuotaUsageReports) []envoys.Usage {
	all := make([]envoys.Usage, 0, len(m.GetBucketQuotaUsages()))
	for _, u := range m.GetBucketQuotaUsages() {
		all = append(all, envoys.Usage{ID: u.GetBucketId().GetBucket(),
			Allowed: u.GetNumRequestsAllowed(), Denied: u.GetNumRequestsDenied(),
			Elapsed: u.GetTimeElapsed().GetSeconds()})
	}
	return all
}

// action holds what a message says of an assignment, as one piece of memory.
type action struct {
	is       rlqsv3.RateLimitQuotaResponse_BucketAction
	id       rlqsv3.BucketId
	assigned rlqsv3.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction_
	assigns  rlqsv3.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction
	lives    durationpb.Duration
	strategy typev3.RateLimitStrategy
	kind     typev3.RateLimitStrategy_TokenBucket
	tokens   typev3.TokenBucket
	fill     wrapperspb.UInt32Value
}

// everySecond is the interval in which all buckets are filled.
var everySecond = &durationpb.Duration{Seconds: 1}

func assignmentsMessage(all []envoys.Assignment) *rlqsv3.RateLimitQuotaResponse {
	m := &rlqsv3.RateLimitQuotaResponse{
		BucketAction: make([]*rlqsv3.RateLimitQuotaResponse_BucketAction, len(all))}
	actions := make([]action, len(all))
	for i, a := range all {
		m.BucketAction[i] = actions[i].set(a)
	}
	return m
}

func (to *action) set(a envoys.Assignment) *rlqsv3.RateLimitQuotaResponse_BucketAction {
	to.id.Bucket = a.ID
	to.is.BucketId = &to.id
	if a.Abandon {
		to.is.BucketAction = &rlqsv3.RateLimitQuotaResponse_BucketAction_AbandonAction_{
			AbandonAction: &rlqsv3.RateLimitQuotaResponse_BucketAction_AbandonAction{}}
		return &to.is
	}
	to.fill.Value, to.tokens.MaxTokens = number(a.Rate), number(a.Burst)
	to.tokens.TokensPerFill, to.tokens.FillInterval = &to.fill, everySecond
	to.kind.TokenBucket, to.strategy.Strategy = &to.tokens, &to.kind
	to.lives.Seconds = a.TTL
	to.assigns.AssignmentTimeToLive, to.assigns.RateLimitStrategy = &to.lives, &to.strategy
	to.assigned.QuotaAssignmentAction, to.is.BucketAction = &to.assigns, &to.assigned
	return &to.is
}

// number returns a number of tokens as far as Envoy can be told it.
func number(n int64) uint32 { return uint32(min(n, maxCount)) }
