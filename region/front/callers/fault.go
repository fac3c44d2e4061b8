package callers

import (
	"context"
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/region/base/door"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/roles"
	"github.com/quotad/quotad/region/front/wire"
)

// badMessage returns the error for a message that cannot be read.
func badMessage(bad door.BadField) error {
	return fieldStatus(wire.Safe(bad.Path, &admit.FieldError{Field: bad.Field, Problem: bad.Problem}))
}

// toStatus converts an error of the node to one of gRPC. It returns nil for nil.
func toStatus(err error) error {
	var field *admit.FieldError
	var refused *roles.Refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		if refused.Caller == "" {
			return status.Error(codes.Unauthenticated, refused.Error())
		}
		return status.Error(codes.PermissionDenied, refused.Error())
	case errors.As(err, &field):
		return fieldStatus(wire.Safe("", field))
	case errors.Is(err, admit.ErrReceipt):
		return status.Error(codes.FailedPrecondition, receiptRefused(err))
	case errors.Is(err, admit.ErrExact):
		return status.Error(codes.FailedPrecondition, err.Error())
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	}
	return status.Error(codes.Unavailable, err.Error())
}

// fieldStatus returns InvalidArgument with a google.rpc.BadRequest. The error is fit to show.
func fieldStatus(e admit.FieldError) error {
	bare := status.New(codes.InvalidArgument, e.Error())
	if full, err := bare.WithDetails(&errdetails.BadRequest{
		FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: e.Field,
			Description: e.Problem}}}); err == nil {
		return full.Err()
	}
	return bare.Err()
}
