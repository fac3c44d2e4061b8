package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// OnUnreachable says what a client decides when no node can be asked: none is connected, none
// answered within Options.Timeout, or the node or the client itself has too much to do. A request
// that a node did decide is not changed, nor one whose own context ended first, that is wrong, or
// that the caller may not make. A call that was not answered in time may have been charged.
type OnUnreachable int

const (
	// Fail returns the error. It is the default.
	Fail OnUnreachable = iota
	// Allow admits the request, and no limit holds meanwhile.
	Allow
	// Deny denies the request.
	Deny
	// Local decides by Options.Local, for each client by itself.
	Local
)

// String returns the name of the choice.
func (u OnUnreachable) String() string {
	switch u {
	case Fail:
		return "Fail"
	case Allow:
		return "Allow"
	case Deny:
		return "Deny"
	case Local:
		return "Local"
	}
	return fmt.Sprintf("OnUnreachable(%d)", int(u))
}

// maxRetryAfter bounds the time that a denial says which no node decided: nobody knows when one
// answers again.
const maxRetryAfter = time.Minute

// unreachable reports whether the error of a call means that no node can be asked. from is the context
// of the caller, and ends is when the client itself gives up.
func unreachable(from context.Context, ends time.Time, err error) bool {
	if from.Err() != nil {
		return false
	}
	code := status.Code(err)
	switch {
	case code == codes.Unavailable, code == codes.ResourceExhausted:
		return true
	case code == codes.DeadlineExceeded, errors.Is(err, context.DeadlineExceeded):
		// The node may answer so a moment before the caller's own context ends.
		own, has := from.Deadline()
		return !has || own.After(ends)
	}
	return false
}

// decideAlone decides a request that no node can be asked about. The error is that of the call if
// the choice is Fail.
func (c *Client) decideAlone(m *quotadv1.CheckRequest, err error) (Decision, error) {
	c.counters.unreachable.Add(1)
	d := Decision{Unreachable: true}
	switch c.options.OnUnreachable {
	case Allow:
		d.Allowed, d.Reason = true, quotadv1.Reason_REASON_STORE_FAILURE_ALLOWED
	case Deny:
		d.Reason, d.RetryAfter = quotadv1.Reason_REASON_STORE_FAILURE, retryOf(err)
	case Local:
		d.Reason = quotadv1.Reason_REASON_STORE_FAILURE_LOCAL
		cost := int64(1)
		if m.Cost != nil {
			cost = m.GetCost()
		}
		d.Allowed, d.RetryAfter = c.local.take(keyOf(m), cost, time.Now())
		d.RetryAfter = min(d.RetryAfter, maxRetryAfter)
	default:
		return Decision{}, err
	}
	if d.Allowed {
		c.counters.allowedAlone.Add(1)
	} else {
		c.counters.deniedAlone.Add(1)
	}
	return d, nil
}

// retryOf returns when a busy node asks to be called again; 0: it does not say.
func retryOf(err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return min(max(info.GetRetryDelay().AsDuration(), 0), maxRetryAfter)
		}
	}
	return 0
}
