package callers

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/suite"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/wire"
)

func batchOf(n int) *quotadv1.CheckBatchRequest {
	m := &quotadv1.CheckBatchRequest{}
	for i := range n {
		m.Requests = append(m.Requests, &quotadv1.CheckRequest{Domain: "api",
			Cost: proto.Int64(int64(i + 1))})
	}
	return m
}

// TestBatch: all requests of a batch are with the node at the same time, each is decided by itself,
// and the answers are in the order of the requests.
func TestBatch(t *testing.T) {
	receipts := map[bool]string{true: fronts.Receipt}
	for _, size := range []int{1, maxInBatch} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			var together sync.WaitGroup
			together.Add(size)
			node := &fronts.Node{
				// until all requests of the batch have come
				Wait: func(context.Context, admit.Request) error {
					together.Done()
					together.Wait()
					return nil
				},
				Decide: func(q admit.Request) (admit.Decision, error) {
					return admit.Decision{Allowed: q.Cost%2 == 0, Reason: admit.OverLimit,
							Remaining: q.Cost, Repeated: q.ID == "again",
							Receipt: receipts[q.Receipt]},
						nil
				},
			}
			m := batchOf(size)
			for i, q := range m.Requests {
				q.RequestId, q.Receipt = []string{"once", "again", ""}[i%3], i%4 == 0
			}
			got, err := quota(t, node).CheckBatch(t.Context(), m)
			suite.Must(t, err)
			if len(got.Decisions) != size {
				t.Fatalf("%d decisions for %d requests", len(got.Decisions), size)
			}
			for i, d := range got.Decisions {
				if cost := int64(i + 1); d.Remaining != cost || d.Allowed != (cost%2 == 0) ||
					d.Repeated != (i%3 == 1) || d.Receipt != receipts[i%4 == 0] {
					t.Errorf("decision %d is %v", i, d)
				}
			}
		})
	}
}

// TestBatchOfWrongRequests: a wrong request is answered alone, and says what is wrong.
func TestBatchOfWrongRequests(t *testing.T) {
	node := &fronts.Node{Decision: fronts.Allowed()}
	m := batchOf(5)
	m.Requests[1].Cost = proto.Int64(0)
	m.Requests[2].RequestId = strings.Repeat("r", admit.MaxIDBytes+1)
	m.Requests[3].Domain = ""
	m.Requests[4].Descriptors = map[string]string{"\n": strings.Repeat("x", 257)}
	got, err := quota(t, node).CheckBatch(t.Context(), m)
	suite.Must(t, err)
	fronts.Equal(t, got.Decisions[0], wire.DecisionMessage(fronts.Allowed()))
	for i, field := range []string{"cost", "request_id", "domain", `descriptors["\n"]`} {
		d := got.Decisions[i+1]
		what, how, _ := strings.Cut(d.Problem, ": ")
		if d.Allowed || d.Reason != quotadv1.Reason_REASON_INVALID_REQUEST || what != field ||
			how == "" {
			t.Errorf("a request with a wrong %s: %v", field, d)
		}
	}
}

// TestBatchSizes: a batch without requests, or with too many, reaches no node.
func TestBatchSizes(t *testing.T) {
	node := &fronts.Node{}
	client := quota(t, node)
	for _, n := range []int{0, maxInBatch + 1} {
		_, err := client.CheckBatch(t.Context(), batchOf(n))
		wantViolations(t, err, "requests")
	}
	if checked, _ := node.Asked(); checked != 0 {
		t.Errorf("%d requests of refused batches reached the node", checked)
	}
}

// padded is a batch of valid requests of the given size on the wire, to some bytes.
func padded(requests, bytes int) *quotadv1.CheckBatchRequest {
	m := batchOf(requests)
	for _, q := range m.Requests {
		q.Descriptors = map[string]string{}
		for n := 0; proto.Size(q) < bytes-260; n++ {
			q.Descriptors[fmt.Sprint(n)] = strings.Repeat("v", 240)
		}
		q.RequestId = strings.Repeat("r", min(admit.MaxIDBytes, bytes-proto.Size(q)-4))
	}
	return m
}

// TestLargestBatches: the largest batch, of requests of 1,000 bytes, fits the bound on messages. So
// do a hundred of the largest requests.
func TestLargestBatches(t *testing.T) {
	client := quota(t, &fronts.Node{})
	m := padded(maxInBatch, 1000)
	if size := proto.Size(m); size < maxInBatch*850 {
		t.Fatalf("the batch has %d bytes, too few to show anything", size)
	}
	if _, err := client.CheckBatch(t.Context(), m); err != nil {
		t.Error(err)
	}
	m = batchOf(100)
	for i, q := range m.Requests {
		q.Domain, q.Descriptors = strings.Repeat("d", 63), map[string]string{}
		for n := range admit.MaxDescriptors {
			q.Descriptors[fmt.Sprintf("%0*d", admit.MaxNameBytes, n)] = strings.Repeat("v",
				admit.MaxValueBytes)
		}
		q.Cost = proto.Int64(1<<51 - int64(i))
		q.RequestId, q.Receipt = strings.Repeat("r", admit.MaxIDBytes), true
	}
	if _, err := client.CheckBatch(t.Context(), m); err != nil {
		t.Error(err)
	}
	m.Requests[0].Domain = strings.Repeat("d", maxMessageBytes)
	if _, err := client.CheckBatch(t.Context(), m); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a larger message is %v, want ResourceExhausted", err)
	}
	m = batchOf(maxInBatch)
	for _, q := range m.Requests {
		q.Descriptors, q.RequestId, q.Receipt = map[string]string{}, "r", true
		for n := range admit.MaxDescriptors {
			q.Descriptors[fmt.Sprint(n)] = "v"
		}
	}
	if _, err := client.CheckBatch(t.Context(), m); err != nil {
		t.Errorf("all that requests may have: %v", err)
	}
}

// TestBatchError: if one request fails, the batch fails with its error.
func TestBatchError(t *testing.T) {
	node := &fronts.Node{Decide: func(q admit.Request) (admit.Decision, error) {
		if q.Cost == 3 {
			return admit.Decision{}, context.DeadlineExceeded
		}
		return admit.Decision{Allowed: true}, nil
	}}
	if _, err := quota(t, node).CheckBatch(t.Context(),
		batchOf(5)); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("got %v, want DeadlineExceeded", err)
	}
}

func checkOf(q admit.Request) *quotadv1.CheckRequest {
	cost := int64(q.Cost)
	return &quotadv1.CheckRequest{Domain: q.Domain, Descriptors: q.Descriptors, Cost: &cost,
		RequestId: q.ID, Receipt: q.Receipt}
}
