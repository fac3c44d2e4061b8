package client

import (
	"container/list"
	"context"
	"maps"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

const (
	// maxTrips is how many calls of Check and CheckBatch are under way at a time. Requests that
	// come meanwhile wait, and go together with the next call.
	maxTrips = 4
	// maxTogether and maxBatchBytes bound the requests that go together. A node takes 1 MiB.
	maxTogether   = 256
	maxBatchBytes = 512 << 10
	// MaxWaiting bounds the requests that wait for a call. One more is not sent: no node can be
	// asked about it, so Options.OnUnreachable decides.
	MaxWaiting = 4096
)

// batches sends requests that come at the same time in common calls. A request that finds fewer
// than maxTrips under way is sent at once and alone. Safe for concurrent use.
type batches struct {
	rpc      quotadv1.QuotaServiceClient
	timeout  time.Duration
	counters *counters

	mu      sync.Mutex
	closed  bool // requests are sent at once
	trips   int
	waiting list.List      // of *place, in the order in which they came
	ends    sync.WaitGroup // of trips
}

// place is that of a request which waits.
type place struct {
	m      *quotadv1.CheckRequest
	bytes  int
	answer chan answer // has room for it, so that nobody waits for a caller that has left
}

type answer struct {
	decision *quotadv1.Decision
	err      error
}

// check asks a node about a request, which must be valid.
func (b *batches) check(ctx context.Context,
	m *quotadv1.CheckRequest) (*quotadv1.Decision, error) {
	b.mu.Lock()
	switch {
	case b.closed:
		b.mu.Unlock()
		return b.alone(ctx, m)
	case b.trips < maxTrips:
		b.trips++
		b.ends.Add(1)
		b.mu.Unlock()
		defer b.tripEnds()
		return b.alone(ctx, m)
	case b.waiting.Len() >= MaxWaiting:
		b.mu.Unlock()
		return nil, status.Errorf(codes.ResourceExhausted,
			"%d requests wait for a call of this client already", MaxWaiting)
	}
	// The caller may change its map when it has given up, and the request be sent all the same.
	m.Descriptors = maps.Clone(m.Descriptors)
	p := &place{m: m, bytes: proto.Size(m), answer: make(chan answer, 1)}
	at := b.waiting.PushBack(p)
	b.mu.Unlock()
	select {
	case a := <-p.answer:
		return a.decision, a.err
	case <-ctx.Done():
		b.leave(at)
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

func (b *batches) alone(ctx context.Context,
	m *quotadv1.CheckRequest) (*quotadv1.Decision, error) {
	r, err := b.rpc.Check(ctx, m)
	return r.GetDecision(), err
}

// leave removes a place, unless its request was sent.
func (b *batches) leave(at *list.Element) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting.Remove(at) // does nothing if it was removed already
}

// tripEnds has the requests that wait go together, if there are any.
func (b *batches) tripEnds() {
	together := b.next()
	if together == nil {
		return
	}
	go func() {
		for ; together != nil; together = b.next() {
			b.send(together)
		}
	}()
}

// next returns the requests of the call that follows one which ended. If there are none, one call
// fewer is under way.
func (b *batches) next() (together []*place) {
	b.mu.Lock()
	defer b.mu.Unlock()
	bytes := 0
	for len(together) < maxTogether {
		first := b.waiting.Front()
		if first == nil {
			break
		}
		p := first.Value.(*place)
		if bytes += p.bytes; bytes > maxBatchBytes && len(together) > 0 {
			break
		}
		b.waiting.Remove(first)
		together = append(together, p)
	}
	if together == nil {
		b.trips--
		b.ends.Done()
	}
	return together
}

// send asks about requests in one call, and answers each.
func (b *batches) send(together []*place) {
	ctx, cancel := context.WithTimeout(context.Background(), b.timeout)
	defer cancel()
	if len(together) == 1 {
		d, err := b.alone(ctx, together[0].m)
		together[0].answer <- answer{d, err}
		return
	}
	m := &quotadv1.CheckBatchRequest{Requests: make([]*quotadv1.CheckRequest, len(together))}
	for i, p := range together {
		m.Requests[i] = p.m
	}
	b.counters.batches.Add(1)
	b.counters.batched.Add(int64(len(together)))
	r, err := b.rpc.CheckBatch(ctx, m)
	if err == nil && len(r.GetDecisions()) != len(together) {
		err = status.Errorf(codes.Internal, "a node answered %d of %d requests; "+
			"set Options.Unbatched, and look at what stands between this client and the node",
			len(r.GetDecisions()), len(together))
	}
	for i, p := range together {
		if err != nil {
			p.answer <- answer{err: err}
			continue
		}
		p.answer <- answerTo(r.GetDecisions()[i])
	}
}

// answerTo is the answer to one request of a batch. One that is wrong or was not decided has the
// error that it would have had alone.
func answerTo(d *quotadv1.Decision) answer {
	if d.GetUndecided() {
		bare := status.New(codes.Unavailable, "the node had no time to decide the request")
		if full, err := bare.WithDetails(&errdetails.RetryInfo{RetryDelay: d.GetRetryAfter()}); err == nil {
			bare = full
		}
		return answer{err: bare.Err()}
	}
	if d.GetReason() == quotadv1.Reason_REASON_INVALID_REQUEST {
		return answer{err: status.Error(codes.InvalidArgument, d.GetProblem())}
	}
	return answer{decision: d}
}

// close waits until no call is under way, Options.Timeout at most. Requests that come later are
// sent alone.
func (b *batches) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.ends.Wait()
}
