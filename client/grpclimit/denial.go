package grpclimit

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quotad/quotad/client"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/base/ratelimit"
)

const (
	// maxPushback is the longest time for which a client's library is told to wait by itself. Its
	// caller waits meanwhile, and knows nothing of it. Beyond it the caller is told at once.
	maxPushback = 5 * time.Second
	// maxFailure bounds a QuotaFailure with its dimensions, in bytes. In a trailer it takes a third
	// more, and there are clients that take 8 KiB of trailers.
	maxFailure = 4 << 10
)

// pushbackKey is the trailer that tells a client's library when to try again by itself.
const pushbackKey = "grpc-retry-pushback-ms"

// deny returns the status of a call that was denied, and sets its trailer.
func (l *limiter) deny(ctx context.Context, charge Charge, d client.Decision) error {
	bare := status.New(codes.ResourceExhausted, "the call is over a limit")
	if d.Reason == quotadv1.Reason_REASON_STORE_FAILURE {
		bare = status.New(codes.Unavailable, "the limits could not be checked")
	}
	if when := pushback(bare.Code(), d.RetryAfter); when != "" {
		_ = grpc.SetTrailer(ctx, metadata.Pairs(pushbackKey, when)) // fails only outside of a call
	}
	var details []protoadapt.MessageV1
	if d.RetryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(d.RetryAfter)})
	}
	if bare.Code() == codes.ResourceExhausted && d.Limit != "" {
		details = append(details, l.quotaFailure(charge, d))
	}
	full, err := bare.WithDetails(details...)
	if err != nil { // messages of their own types always fit
		return bare.Err()
	}
	return full.Err()
}

// pushback returns when a client's library may try a denied call again, in milliseconds; -1: it must
// not; empty: as it likes, because nobody knows.
func pushback(code codes.Code, retry time.Duration) string {
	switch {
	case retry > maxPushback, retry <= 0 && code == codes.ResourceExhausted:
		return "-1"
	case retry <= 0:
		return ""
	}
	return strconv.FormatInt(ratelimit.RoundUp(retry, time.Millisecond), 10)
}

// quotaFailure returns the limits that denied a call.
func (l *limiter) quotaFailure(charge Charge, d client.Decision) *errdetails.QuotaFailure {
	failure := &errdetails.QuotaFailure{}
	add := func(limit, unit string, units int64) {
		v := &errdetails.QuotaFailure_Violation{Subject: "limit:" + limit,
			Description: fmt.Sprintf("the limit is %d %s", units, cmp.Or(unit, "units")),
			ApiService:  l.options.Domain, QuotaMetric: cmp.Or(unit, "requests"), QuotaId: limit,
			QuotaValue: units}
		if !l.options.NoDimensions {
			v.QuotaDimensions = charge.Descriptors
		}
		failure.Violations = append(failure.Violations, v)
	}
	for _, s := range d.Limits {
		if !s.Admits && !s.Shadow {
			add(s.Limit, s.Unit, s.LimitUnits)
		}
	}
	if len(failure.Violations) == 0 {
		add(d.Limit, d.Unit, d.LimitUnits)
	}
	if proto.Size(failure) > maxFailure {
		for _, v := range failure.Violations {
			v.QuotaDimensions = nil
		}
	}
	return failure
}
