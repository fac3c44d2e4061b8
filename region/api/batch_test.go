package api

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/admit"
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
	receipts := map[bool]string{true: aReceipt}
	for _, size := range []int{0, 1, 100} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			var together sync.WaitGroup
			together.Add(size)
			node := &fakeNode{
				// until all requests of the batch have come
				wait: func(context.Context, admit.Request) error {
					together.Done()
					together.Wait()
					return nil
				},
				decide: func(q admit.Request) (admit.Decision, error) {
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
			if err != nil {
				t.Fatal(err)
			}
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

// TestBatchRefused: one bad request refuses the batch before the node has seen any of it. The error
// names all that is wrong.
func TestBatchRefused(t *testing.T) {
	node := &fakeNode{}
	client := quota(t, node)
	m := batchOf(5)
	m.Requests[1].Cost = proto.Int64(0)
	m.Requests[2].RequestId = strings.Repeat("r", admit.MaxIDBytes+1)
	m.Requests[3].Domain = ""
	m.Requests[4].Descriptors = map[string]string{"\n": strings.Repeat("x", 257)}
	_, err := client.CheckBatch(t.Context(), m)
	wantViolations(t, err, "requests[1].cost", "requests[2].request_id", "requests[3].domain",
		`requests[4].descriptors["\n"]`)
	_, err = client.CheckBatch(t.Context(), batchOf(101))
	wantViolations(t, err, "requests")
	if checked, _ := node.asked(); checked != 0 {
		t.Errorf("%d requests of refused batches reached the node", checked)
	}
}

// TestBatchOfTheLargestRequests: the largest valid batch fits the bound on messages.
func TestBatchOfTheLargestRequests(t *testing.T) {
	m := batchOf(100)
	for i, q := range m.Requests {
		q.Domain, q.Descriptors = strings.Repeat("d", 63), map[string]string{}
		for n := range admit.MaxDescriptors {
			q.Descriptors[fmt.Sprintf("%0*d", admit.MaxNameBytes, n)] = strings.Repeat("v",
				admit.MaxValueBytes)
		}
		q.Cost = proto.Int64(1<<51 - int64(i))
		q.RequestId, q.Receipt = strings.Repeat("r", admit.MaxIDBytes), true
	}
	if _, err := quota(t, &fakeNode{}).CheckBatch(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	m.Requests[0].Domain = strings.Repeat("d", maxMessageBytes)
	if _, err := quota(t, &fakeNode{}).CheckBatch(t.Context(),
		m); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a larger message is %v, want ResourceExhausted", err)
	}
}

// TestBatchError: if one request fails, the batch fails with its error.
func TestBatchError(t *testing.T) {
	node := &fakeNode{decide: func(q admit.Request) (admit.Decision, error) {
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
