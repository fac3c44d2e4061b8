package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/admit"
	"github.com/quotad/quotad/region/door"
)

const (
	// largeCall is the size in bytes from which a call is a batch that is refused while much of its caller waits for the
	// store. Smaller ones cost little to read, and then have a place of their own in the queue, or none.
	largeCall = 1 << 10
	// shedRetry is when to come again for a call that found the node's processors busy.
	shedRetry = 50 * time.Millisecond

	// shedPause is how long a call that was not read waits at most to be told so: a client that comes again at once would else
	// have the node do nothing but refuse it. The calls of one pause are told together, with few writes to each connection.
	// Beyond maxPaused such calls at a time they are told at once.
	shedPause = 20 * time.Millisecond
	maxPaused = 1024

	overloaded = "queue_full: the node has more to do than it can; nothing was charged; send fewer requests, or send them later"
)

// shedding are the methods whose calls are refused unread by a node that has too much to do. The others are few, or are how
// operators see what it does.
var shedding = []string{quotadv1.QuotaService_Check_FullMethodName, quotadv1.QuotaService_CheckBatch_FullMethodName,
	quotadv1.QuotaService_Peek_FullMethodName}

// admit takes a call of a gRPC client in hand before it is decoded.
func (s *Server) admit(ctx context.Context, message []byte, waited time.Duration) (*door.Held, error) {
	if s.work.Behind(waited) && len(message) >= largeCall {
		s.work.Shed("grpc")
		return nil, s.tell(ctx, shedRetry)
	}
	conn := ""
	if p, known := peer.FromContext(ctx); known {
		conn = p.Addr.String()
	}
	held, retry := s.take("grpc", hostOf(conn), conn, len(message))
	if held == nil {
		return nil, s.tell(ctx, retry)
	}
	return held, nil
}

// tell tells a call after a pause that it was not read, and when it may come again.
func (s *Server) tell(ctx context.Context, retry time.Duration) error {
	s.paused.pause(ctx)
	return shedStatus(retry)
}

// pauses has calls that were not read wait to be told so. The zero value is ready. Safe for concurrent use.
type pauses struct {
	mu   sync.Mutex
	over chan struct{} // closed when the present pause is over; nil: there is none
	wait int           // calls that wait for it
}

// pause returns when the present pause is over, or ctx is.
func (p *pauses) pause(ctx context.Context) {
	p.mu.Lock()
	if p.wait == maxPaused {
		p.mu.Unlock()
		return
	}
	if p.over == nil {
		p.over = make(chan struct{})
		time.AfterFunc(shedPause, p.end)
	}
	p.wait++
	over := p.over
	p.mu.Unlock()
	select {
	case <-over:
	case <-ctx.Done():
	}
}

// end ends the present pause.
func (p *pauses) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.over)
	p.over, p.wait = nil, 0
}

// take takes a call in hand; nil: it is refused, and may come again after a time.
func (s *Server) take(port, caller, conn string, size int) (held *door.Held, retry time.Duration) {
	if size >= largeCall {
		if retry, busy := s.node.Busy(caller); busy {
			s.work.Shed(port)
			return nil, retry
		}
	}
	if held = s.work.Take(caller, conn, size); held == nil {
		s.work.Shed(port)
	}
	return held, shedRetry
}

// shedStatus is what a gRPC client is told whose call was not read.
func shedStatus(retry time.Duration) error {
	bare := status.New(codes.ResourceExhausted, overloaded)
	if full, err := bare.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(retry)}); err == nil {
		return full.Err()
	}
	return bare.Err()
}

// shed is the error of a request over HTTP that was not read.
type shed struct{ retry time.Duration }

// Error implements error.
func (*shed) Error() string { return overloaded }

// shedProblem is what is told over HTTP: what a denial has in common with every decision, without a limit, for which one it
// would be nobody looked.
type shedProblem struct {
	problem
	Allowed    bool         `json:"allowed"`
	Reason     admit.Reason `json:"reason"`
	RetryAfter Milliseconds `json:"retry_after_ms"`
}

func writeShed(w http.ResponseWriter, e *shed) {
	setRetryAfter(w.Header(), admit.Decision{RetryAfter: e.retry})
	write(w, "application/problem+json", http.StatusTooManyRequests, shedProblem{
		problem: newProblem(http.StatusTooManyRequests, overloaded), Reason: admit.QueueFull, RetryAfter: Milliseconds(e.retry)})
}
