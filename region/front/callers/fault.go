package callers

import (
	"context"
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/decide/receipts"
	"github.com/quotad/quotad/region/front/roles"
	"github.com/quotad/quotad/region/front/wire"
)

// toStatus converts an error of the node to one of gRPC. It returns nil for nil.
func toStatus(err error) error {
	var field *invalid.Field
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
		return fieldStatus(field)
	case errors.Is(err, receipts.ErrRefused), errors.Is(err, admit.ErrExact):
		return status.Error(codes.FailedPrecondition, err.Error())
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	}
	return status.Error(codes.Unavailable, err.Error())
}

// fieldStatus returns InvalidArgument with a google.rpc.BadRequest.
func fieldStatus(e *invalid.Field) error {
	e = wire.Safe(e)
	bare := status.New(codes.InvalidArgument, e.Error())
	if full, err := bare.WithDetails(&errdetails.BadRequest{
		FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: e.Within + e.Name,
			Description: e.Problem}}}); err == nil {
		return full.Err()
	}
	return bare.Err()
}
