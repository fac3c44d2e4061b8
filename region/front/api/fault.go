package api

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/region/base/door"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/roles"
)

// badMessage returns the error for a message that cannot be read.
func badMessage(bad door.BadField) error {
	return fieldStatus(safe(bad.Path, &admit.FieldError{Field: bad.Field, Problem: bad.Problem}))
}

// toStatus converts an error of the node to one of gRPC. It returns nil for nil.
func toStatus(err error) error {
	var field *admit.FieldError
	var refused *roles.Refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return refusalStatus(refused)
	case errors.As(err, &field):
		return fieldStatus(safe("", field))
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

// safe makes a field error fit to show. The caller chose the name of a descriptor, so it is quoted
// unless it is a plain word, as in descriptors["a\nb"].
func safe(path string, e *admit.FieldError) admit.FieldError {
	field := e.Field
	if name, ok := strings.CutPrefix(field, "descriptors."); ok && !plain(name) {
		field = "descriptors[" + quote(name) + "]"
	}
	return admit.FieldError{Field: path + field, Problem: e.Problem}
}

// plain reports whether a name can be shown without quotes.
func plain(name string) bool {
	for _, c := range []byte(name) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' ||
			c == '-' || c == '.') {
			return false
		}
	}
	return name != "" && len(name) <= maxEchoed
}

// maxEchoed bounds the bytes of input that an answer repeats.
const maxEchoed = 64

// quote makes input safe to show: ASCII, in quotes, and cut to maxEchoed bytes.
func quote(s string) string {
	if len(s) > maxEchoed {
		return strconv.QuoteToASCII(s[:maxEchoed]) + "..."
	}
	return strconv.QuoteToASCII(s)
}
