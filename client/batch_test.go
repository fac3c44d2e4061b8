package client_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/client"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// gate is a connection whose calls last until they are let through. Of each request that is
// admitted, what is left says its cost. A cost of 13 is wrong.
type gate struct {
	*fakeNode
	lets  chan struct{} // closed, or one call for each that is sent
	short bool          // whether a decision is missing in each batch

	mu    sync.Mutex
	sizes []int // of the calls that came, in requests; 0: a Check
	bytes int   // of the largest call
}

// Invoke implements grpc.ClientConnInterface.
func (g *gate) Invoke(ctx context.Context, _ string, args, reply any, _ ...grpc.CallOption) error {
	batch, together := args.(*quotadv1.CheckBatchRequest)
	g.mu.Lock()
	g.sizes = append(g.sizes, len(batch.GetRequests()))
	g.bytes = max(g.bytes, proto.Size(args.(proto.Message)))
	g.mu.Unlock()
	select {
	case <-g.lets:
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
	if !together {
		d := decide(args.(*quotadv1.CheckRequest))
		proto.Merge(reply.(proto.Message), &quotadv1.CheckResponse{Decision: d})
		return nil
	}
	answer := reply.(*quotadv1.CheckBatchResponse)
	for _, m := range batch.Requests {
		answer.Decisions = append(answer.Decisions, decide(m))
	}
	if g.short {
		answer.Decisions = answer.Decisions[1:]
	}
	return nil
}

// busyCost is a cost for which the node has no time when it comes in a batch.
const busyCost = 1000

func decide(m *quotadv1.CheckRequest) *quotadv1.Decision {
	if m.GetCost() == 13 {
		return &quotadv1.Decision{Reason: quotadv1.Reason_REASON_INVALID_REQUEST,
			Problem: "cost: is unlucky"}
	}
	if m.GetCost() == busyCost {
		return &quotadv1.Decision{Reason: quotadv1.Reason_REASON_QUEUE_FULL, Undecided: true,
			RetryAfter: durationpb.New(7 * time.Millisecond)}
	}
	return &quotadv1.Decision{Allowed: true, Remaining: m.GetCost(),
		Share: int64(len(m.GetDescriptors()["account"]))}
}

func newGate() *gate { return &gate{fakeNode: newFake(0), lets: make(chan struct{})} }

// outcome is what a caller was told.
type outcome struct {
	d   client.Decision
	err error
}

// ask has so many callers ask for costs from 1 at a time. The outcomes are there when they return.
func ask(ctx context.Context, c *client.Client, callers int) ([]outcome, *sync.WaitGroup) {
	all, told := new(sync.WaitGroup), make([]outcome, callers)
	for n := range callers {
		all.Go(func() {
			d, err := c.Check(ctx, request(int64(n+1)))
			told[n] = outcome{d, err}
		})
		synctest.Wait() // in this order
	}
	return told, all
}

// A request of a batch that the node had no time for is answered as when no node can be asked: with
// an error, or as the client says.
func TestUndecidedInABatch(t *testing.T) {
	for u, o := range choices() {
		bubble.Test(t, func(t *testing.T) {
			g := newGate()
			c := client.New(g, o)
			_, all := ask(t.Context(), c, 5)
			var d client.Decision
			var err error
			all.Go(func() { d, err = c.Check(t.Context(), request(busyCost)) })
			synctest.Wait()
			close(g.lets)
			all.Wait()
			if u == client.Fail {
				if status.Code(err) != codes.Unavailable || len(status.Convert(err).Details()) == 0 {
					t.Errorf("%+v, %v", d, err)
				}
			} else if err != nil || !d.Unreachable || d.Reason == quotadv1.Reason_REASON_QUEUE_FULL ||
				u == client.Deny && d.RetryAfter != 7*time.Millisecond {
				t.Errorf("%v: %+v, %v", u, d, err)
			}
			closed(t, c)
		})
	}
}

// Requests that come while four calls are under way go together, and each is answered for itself.
func TestRequestsGoTogether(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate()
		c := client.New(g, client.Options{})
		told, all := ask(t.Context(), c, 256)
		if fmt.Sprint(g.sizes) != "[0 0 0 0]" {
			t.Fatalf("calls of %v requests, want 4 alone", g.sizes)
		}
		g.lets <- struct{}{}
		synctest.Wait()
		if fmt.Sprint(g.sizes) != "[0 0 0 0 252]" {
			t.Errorf("calls of %v requests", g.sizes)
		}
		close(g.lets)
		all.Wait()
		for n, one := range told {
			wrong := n+1 == 13
			if wrong && (status.Code(one.err) != codes.InvalidArgument ||
				!strings.Contains(one.err.Error(), "cost: is unlucky")) {
				t.Errorf("what is wrong: %+v", one)
			}
			if !wrong && (one.err != nil || one.d.Remaining != int64(n+1)) {
				t.Errorf("caller %d: %+v", n, one)
			}
		}
		if s := closed(t, c); s.Batches != 1 || s.Batched != 252 || s.Asked != 256 {
			t.Errorf("%+v", s)
		}
	})
}

// Callers that give up leave their places, and requests in batches are bounded.
func TestPlacesAreLeft(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate()
		c := client.New(g, client.Options{Timeout: time.Hour})
		_, first := ask(t.Context(), c, 4)
		leaving, leave := context.WithCancel(t.Context())
		left, gone := ask(leaving, c, 10)
		_, rest := ask(t.Context(), c, 258)
		leave()
		gone.Wait()
		for _, one := range left {
			if status.Code(one.err) != codes.Canceled {
				t.Errorf("%+v", one)
			}
		}
		g.lets <- struct{}{}
		synctest.Wait()
		close(g.lets)
		first.Wait()
		rest.Wait()
		if fmt.Sprint(g.sizes) != "[0 0 0 0 256 2]" {
			t.Errorf("calls of %v requests", g.sizes)
		}
		closed(t, c)
	})
}

// A request that finds too many waiting is decided as was chosen. Each that waited too long is too.
func TestWaitingIsBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate()
		c := client.New(g, client.Options{OnUnreachable: client.Deny})
		told, all := ask(t.Context(), c, 4+client.MaxWaiting)
		if s := c.Stats(); s.Unreachable != 0 {
			t.Fatalf("%+v", s)
		}
		if d, err := c.Check(t.Context(), request(1)); err != nil || !d.Unreachable || d.Allowed {
			t.Errorf("one more: %+v, %v", d, err)
		}
		all.Wait()
		for n, one := range told {
			if one.err != nil || !one.d.Unreachable {
				t.Fatalf("caller %d: %+v", n, one)
			}
		}
		close(g.lets)
		if d, err := c.Check(t.Context(), request(7)); err != nil || d.Remaining != 7 {
			t.Errorf("afterwards: %+v, %v", d, err)
		}
		closed(t, c)
	})
}

// Long requests go in several batches, none of which is larger than a node takes.
func TestBatchesAreSmall(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate()
		c := client.New(g, client.Options{})
		long := client.Request{Domain: "api", Descriptors: map[string]string{
			"account": strings.Repeat("a", 15<<10)}}
		var all sync.WaitGroup
		for range 4 + 100 {
			all.Go(func() {
				if d, err := c.Check(t.Context(), long); err != nil || !d.Allowed {
					t.Errorf("%+v, %v", d, err)
				}
			})
		}
		synctest.Wait()
		close(g.lets)
		all.Wait()
		if s := closed(t, c); s.Batched != 100 || g.bytes > 513<<10 {
			t.Errorf("%d bytes in a call: %+v", g.bytes, s)
		}
	})
}

// A batch that a node answers in part is an error for each of its callers.
func TestAnswersThatAreMissing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate()
		g.short = true
		c := client.New(g, client.Options{OnUnreachable: client.Allow})
		told, all := ask(t.Context(), c, 6)
		close(g.lets)
		all.Wait()
		for n, one := range told {
			if n >= 4 && (status.Code(one.err) != codes.Internal ||
				!strings.Contains(one.err.Error(), "answered 1 of 2 requests")) {
				t.Errorf("caller %d: %+v", n, one)
			}
		}
		closed(t, c)
	})
}

// The descriptors of a request may be changed when its caller has given up.
func TestDescriptorsAreTheCallers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate()
		c := client.New(g, client.Options{Timeout: time.Hour})
		_, all := ask(t.Context(), c, 6)
		ctx, cancel := context.WithCancel(t.Context())
		own := map[string]string{"account": "1"}
		var changing sync.WaitGroup
		changing.Go(func() {
			_, _ = c.Check(ctx, client.Request{Domain: "api", Descriptors: own})
			own["account"] = "2"
		})
		synctest.Wait()
		g.lets <- struct{}{}
		synctest.Wait() // it is being sent
		cancel()
		close(g.lets)
		changing.Wait()
		all.Wait()
		closed(t, c)
	})
}

// Unbatched requests each go alone.
func TestUnbatched(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate()
		c := client.New(g, client.Options{Unbatched: true})
		_, all := ask(t.Context(), c, 20)
		close(g.lets)
		all.Wait()
		if s := closed(t, c); len(g.sizes) != 20 || s.Batches != 0 {
			t.Errorf("calls of %v requests: %+v", g.sizes, s)
		}
	})
}

// Over gRPC, each of many callers gets its own answers. The server dies at the end, and all are
// told so.
func TestManyCallersOverGRPC(t *testing.T) {
	s := serve(t, &served{name: "n1"})
	c := dialed(t, client.Options{Timeout: 30 * time.Second, OnUnreachable: client.Deny}, s.at)
	var all sync.WaitGroup
	for n := range 256 {
		all.Go(func() {
			for round := range 8 {
				cost := int64(1 + n*8 + round)
				d, err := c.Check(t.Context(), request(cost))
				if err != nil || d.Remaining != cost {
					t.Errorf("caller %d: %+v, %v", n, d, err)
				}
			}
		})
	}
	all.Wait()
	if st := c.Stats(); st.Batched == 0 || s.count() >= 256*8 {
		t.Errorf("%d calls: %+v", s.count(), st)
	}
	s.server.Stop()
	for range 64 {
		all.Go(func() {
			if d, err := c.Check(t.Context(), request(1)); err != nil || !d.Unreachable {
				t.Errorf("%+v, %v", d, err)
			}
		})
	}
	all.Wait()
}
