package callers

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/suite"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/decide/admit"
)

// decidesAtOnce is a node that has decided everything before it is asked.
type decidesAtOnce struct {
	fronts.Node
	decided []admit.Decision
}

// CheckBatch returns as many decisions as there are requests.
func (n *decidesAtOnce) CheckBatch(_ context.Context, all []admit.Request) ([]admit.Decision,
	error) {
	return n.decided[:len(all)], nil
}

// BenchmarkBatch measures calls of maxInBatch decisions on as many accounts: handled by a node on
// a real redis-server, and by one that decides at once. Both decode the request and encode the
// answer. The time is the wall clock's, and with a Redis includes the wait for it.
func BenchmarkBatch(b *testing.B) {
	batch := &quotadv1.CheckBatchRequest{}
	atOnce := &decidesAtOnce{}
	for i := range maxInBatch {
		account := fmt.Sprintf("account-%06d", i)
		batch.Requests = append(batch.Requests, &quotadv1.CheckRequest{Domain: "api",
			Descriptors: map[string]string{"account": account}})
		atOnce.decided = append(atOnce.decided, fronts.Allowed())
	}
	for name, start := range map[string]func(*testing.B) Node{
		"codec": func(*testing.B) Node { return atOnce },
		"redis": func(b *testing.B) Node {
			return fronts.Start(b, fixtures.Process(b), fronts.AccountLimit(1<<40, time.Hour))
		},
	} {
		b.Run(name, func(b *testing.B) {
			node := start(b)
			handler := &service{Server: newServer(b, node, fronts.Quiet())}
			handles(b, batch, &quotadv1.CheckBatchRequest{}, handler.CheckBatch)
		})
	}
}

// handles measures decoding a request into m, handling it, and encoding the answer.
func handles[Q, A proto.Message](b *testing.B, request proto.Message, m Q,
	handle func(context.Context, Q) (A, error)) {
	raw, err := proto.Marshal(request)
	suite.Must(b, err)
	var answer []byte
	b.ReportAllocs()
	for b.Loop() {
		if err := proto.Unmarshal(raw, m); err != nil {
			b.Fatal(err)
		}
		got, err := handle(b.Context(), m)
		if err != nil {
			b.Fatal(err)
		}
		answer, err = proto.MarshalOptions{}.MarshalAppend(answer[:0], got)
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/maxInBatch, "us/decision")
	b.ReportMetric(float64(len(raw)), "request-bytes")
	b.ReportMetric(float64(len(answer)), "answer-bytes")
}
