package client

import (
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// maxRequestBytes bounds a request as it is sent. A node takes at most 16 descriptors of some
// hundred bytes, so that a larger one is never valid.
const maxRequestBytes = 16 << 10

// validate returns the error of a request that must not be sent, because it would spoil the calls
// of others or could not be decided by the client alone. All else that is wrong a node says.
func validate(m *quotadv1.CheckRequest) error {
	if m.Cost != nil && (m.GetCost() < 1 || m.GetCost() > maxUnits) {
		return invalid("cost: is %d; give 1 to %d units", m.GetCost(), int64(maxUnits))
	}
	if !utf8.ValidString(m.GetDomain()) {
		return invalid("domain: is not UTF-8; send the name of a domain of the limits document")
	}
	if !utf8.ValidString(m.GetRequestId()) {
		return invalid("request_id: is not UTF-8; encode it, as hex or base64")
	}
	for name, value := range m.GetDescriptors() {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return invalid("descriptors.%q: is not UTF-8; encode it, as hex or base64", name)
		}
	}
	if size := proto.Size(m); size > maxRequestBytes {
		return invalid("the request has %d bytes, more than the %d that a node would take; "+
			"send hashes of long descriptors", size, maxRequestBytes)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}
