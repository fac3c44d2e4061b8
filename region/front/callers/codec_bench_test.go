package callers

import (
	"encoding/json"
	"testing"
	"time"

	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/suite"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/wire"
)

// BenchmarkCodec measures how long it takes to read and validate a request of two descriptors, and
// to write the decision on it, in each of the formats. Transport, headers and the handler are not
// part of it.
func BenchmarkCodec(b *testing.B) {
	descriptors := map[string]string{"account": "account-42", "path": "/v1/orders"}
	decision := admit.Decision{Allowed: true, Reason: admit.WithinLimit, Limit: "account-minute",
		Algorithm: algorithms.FixedWindow, LimitUnits: 1000, Remaining: 417,
		ResetAfter: 31*time.Second + 250*time.Millisecond, Cell: 29_712_345,
		At: 1_782_740_728_750_000, Node: "eu-west-1", Region: "eu-west", Entitlement: 333,
		Share: 500, Sequence: 123_456}
	b.Run("grpc/decode", func(b *testing.B) {
		raw, err := proto.Marshal(&quotadv1.CheckRequest{Domain: "api", Descriptors: descriptors})
		suite.Must(b, err)
		decodes(b, func() (admit.Request, error) {
			var m quotadv1.CheckRequest
			if err := proto.Unmarshal(raw, &m); err != nil {
				return admit.Request{}, err
			}
			q := charge(&m)
			return q, q.Validate()
		})
	})
	b.Run("json/decode", func(b *testing.B) {
		body, err := json.Marshal(map[string]any{"domain": "api", "descriptors": descriptors})
		suite.Must(b, err)
		decodes(b, func() (admit.Request, error) { return decodeCheck(body) })
	})
	b.Run("grpc/encode", func(b *testing.B) {
		codec := encoding.GetCodecV2(grpcproto.Name)
		b.ReportAllocs()
		for b.Loop() {
			buffers, err := codec.Marshal(
				&quotadv1.CheckResponse{Decision: wire.DecisionMessage(decision)})
			if err != nil {
				b.Fatal(err)
			}
			buffers.Free()
		}
	})
	b.Run("json/encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(newDecision(decision)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// decodes measures decode, which must return a request of two descriptors and cost 1.
func decodes(b *testing.B, decode func() (admit.Request, error)) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		q, err := decode()
		if err != nil || len(q.Descriptors) != 2 || q.Cost != quantity.Units(1) {
			b.Fatalf("%+v, %v", q, err)
		}
	}
}
