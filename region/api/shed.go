package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	envoy "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
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
	// largeCall is the size in bytes from which a call counts as a batch. A batch is refused while
	// much of its caller's work waits for the store. Smaller calls cost little to read, and find
	// their own place in the queue or none.
	largeCall = 1 << 10
	// shedRetry is the time after which a call may come again that found the node's processors
	// busy.
	shedRetry = 50 * time.Millisecond

	// shedPause is how long the answer to a call that was not read is delayed, at most. Without it,
	// clients that come again at once would keep the node busy with refusing them. All calls of one
	// pause are answered together, with few writes to each connection. While maxPaused calls are
	// delayed, further ones are answered at once.
	shedPause = 20 * time.Millisecond
	maxPaused = 1024

	// maxBatches bounds the batches over HTTP that are read, decided or answered at a time. Each
	// may hold a body of maxBatchBytes and an answer as long.
	maxBatches = 32

	overloaded = "queue_full: the node has more to do than it can; nothing was charged; send fewer requests, or send them later"
)

// shedding lists the methods whose calls a busy node refuses unread. Calls of other methods are
// few, or show operators what the node does.
var shedding = []string{quotadv1.QuotaService_Check_FullMethodName,
	quotadv1.QuotaService_CheckBatch_FullMethodName,
	quotadv1.QuotaService_CheckColumns_FullMethodName,
	quotadv1.QuotaService_Peek_FullMethodName,
	quotadv1.QuotaService_Take_FullMethodName,
	envoy.RateLimitService_ShouldRateLimit_FullMethodName}

// admit takes a call of a gRPC client into processing before it is decoded, or refuses it.
func (s *Server) admit(ctx context.Context, message []byte, waited time.Duration) (*door.Held,
	error) {
	if s.work.Behind(waited) && len(message) >= largeCall {
		s.work.Shed("grpc")
		return nil, s.tell(ctx, shedRetry)
	}
	host, conn := "", ""
	if p, known := peer.FromContext(ctx); known {
		host, conn = door.HostAt(p.Addr), p.Addr.String()
	}
	held, retry := s.take("grpc", host, conn, len(message))
	if held == nil {
		return nil, s.tell(ctx, retry)
	}
	return held, nil
}

// tell returns, after a pause, the error of a call that was not read. It says when the call may
// come again.
func (s *Server) tell(ctx context.Context, retry time.Duration) error {
	s.paused.pause(ctx)
	return shedStatus(retry)
}

// pauses delays the answers to calls that were not read. The zero value is ready. Safe for
// concurrent use.
type pauses struct {
	mu   sync.Mutex
	over chan struct{} // closed at the end of the present pause; nil: there is none
	wait int           // calls that wait for that
}

// pause returns at the end of the present pause, or when ctx ends.
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

// take takes a call into processing. held is nil if the call is refused, and then retry is the time
// after which it may come again.
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

// places bounds the batches over HTTP that are under way. A caller with none finds room beside one
// that takes all it can. The zero value is ready. Safe for concurrent use.
type places struct {
	mu      sync.Mutex
	taken   int
	callers map[string]int // of those that have any
}

// take takes a place for a batch of a caller, and returns the function that gives it back. It
// returns nil if none is left, or the caller would have more of them than are free.
func (p *places) take(caller string) (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.callers[caller]+1 > maxBatches-p.taken {
		return nil
	}
	if p.callers == nil {
		p.callers = map[string]int{}
	}
	p.taken++
	p.callers[caller]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.taken--
		if p.callers[caller]--; p.callers[caller] == 0 {
			delete(p.callers, caller)
		}
	}
}

// shedStatus returns the gRPC error of a call that was not read.
func shedStatus(retry time.Duration) error {
	bare := status.New(codes.ResourceExhausted, overloaded)
	if full, err := bare.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(retry)}); err == nil {
		return full.Err()
	}
	return bare.Err()
}

// shed is the error of an HTTP request that was not read.
type shed struct{ retry time.Duration }

// Error implements error.
func (*shed) Error() string { return overloaded }

// shedProblem is the answer to an HTTP request that was not read. It has the members that every
// denial has, but names no limit, because none was looked up.
type shedProblem struct {
	problem
	Allowed    bool         `json:"allowed"`
	Reason     admit.Reason `json:"reason"`
	RetryAfter Milliseconds `json:"retry_after_ms"`
}

// shed answers, after a pause, an HTTP request that was not read.
func (s *Server) shed(w http.ResponseWriter, r *http.Request, retry time.Duration) {
	s.paused.pause(r.Context())
	writeShed(w, http.StatusTooManyRequests, retry)
}

func writeShed(w http.ResponseWriter, code int, retry time.Duration) {
	setRetryAfter(w.Header(), admit.Decision{RetryAfter: retry})
	write(w, "application/problem+json", code, shedProblem{problem: newProblem(code, overloaded),
		Reason: admit.QueueFull, RetryAfter: Milliseconds(retry)})
}
