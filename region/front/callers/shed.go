package callers

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	envoy "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/base/door"
	"github.com/quotad/quotad/region/base/ratelimit"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/front/asjson"
	"github.com/quotad/quotad/region/front/wire"
)

const (
	// largeCall is the size in bytes from which a call counts as a batch. A batch is refused while
	// much of its caller's work waits for the store. Smaller calls cost little to read, and find
	// their own place in the queue or none.
	largeCall = 1 << 10
	// shedRetry is the time after which a call may come again that found the node's processors
	// busy.
	shedRetry = 50 * time.Millisecond

	// shedPause is how long the answer to a batch over HTTP that was not read is delayed. Without it,
	// clients that come again at once would keep the node busy with refusing them.
	shedPause = 20 * time.Millisecond

	// maxBatches bounds the batches over HTTP that are read, decided or answered at a time. Each
	// may hold a body of maxBatchBytes and an answer as long.
	maxBatches = 32

	// httpWait is how long a request over HTTP waits for its turn whose caller names no time, and
	// maxNamedWait the longest that one may name. A proxy that has no answer by then keeps its client
	// waiting.
	httpWait     = 50 * time.Millisecond
	maxNamedWait = time.Minute
	// proxyWait is how long a request of a proxy waits for room in the node and for its turn together.
	// The recipes have proxies wait for a second: what they give up on may pass.
	proxyWait = 500 * time.Millisecond

	overloaded = "queue_full: the node has more to do than it can; nothing was charged; send fewer requests, or send them later"
)

// shedding lists the methods whose calls a busy node refuses unread. Calls of other methods are
// few, or show operators what the node does.
var shedding = []string{quotadv1.QuotaService_Check_FullMethodName,
	quotadv1.QuotaService_CheckBatch_FullMethodName,
	quotadv1.QuotaService_Peek_FullMethodName,
	quotadv1.QuotaService_Take_FullMethodName,
	envoy.RateLimitService_ShouldRateLimit_FullMethodName}

// admit takes a call of a gRPC client into processing before it is decoded, or refuses it. The call
// waits for room until its caller is about to give up.
func (s *Server) admit(ctx context.Context, message []byte, waited time.Duration) (*door.Held,
	error) {
	behind := s.work.Behind(waited)
	host, conn := "", ""
	if p, known := peer.FromContext(ctx); known {
		host, conn = door.HostAt(p.Addr), p.Addr.String()
	}
	ends, given := ctx.Deadline()
	if !given {
		ends = time.Now().Add(cmp.Or(s.options.Wait, admit.DefaultWait))
	}
	held := s.take(ctx, "grpc", host, conn, len(message), ends, behind)
	if held == nil {
		return nil, failed(ctx, errShed)
	}
	return held, nil
}

// failed converts an error of a call that was to be decided to one of gRPC, and tells the client's
// library when it may send a call again that was not decided. It returns nil for nil.
func failed(ctx context.Context, err error) error {
	retry, why := busy(err)
	if why == nil {
		return toStatus(err)
	}
	pushback := strconv.FormatInt(ratelimit.RoundUp(retry, time.Millisecond), 10)
	_ = grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", pushback)) // fails only outside of a call
	return busyStatus(why.Error(), retry).Err()
}

// take takes a call into processing whose caller gives up at ends, and waits for room. It returns nil
// if the call is refused. A large call also waits while its caller's work in the queue takes much of
// the time that it has, or, if behind is true, for another call to end.
func (s *Server) take(ctx context.Context, port, caller, conn string, size int, ends time.Time,
	behind bool) *door.Held {
	var may func() bool
	if size >= largeCall {
		may = func() bool {
			return !s.node.Busy(caller, time.Until(ends))
		}
	}
	held := s.work.Wait(ctx, caller, conn, size, door.Outwaits(time.Now(), ends),
		behind && size >= largeCall, may)
	if held == nil {
		s.work.Shed(port)
	}
	return held
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

// busyStatus is the status of a call that was not decided.
func busyStatus(why string, retry time.Duration) *status.Status {
	bare := status.New(codes.Unavailable, why)
	full, err := bare.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(retry)})
	if err != nil { // it has a details' list, so this cannot be
		return bare
	}
	return full
}

// errShed is the error of a call that was not read.
var errShed = errors.New(overloaded)

// busyProblem is the answer to an HTTP request that was not decided. It is no denial: it says
// neither allowed nor a limit.
type busyProblem struct {
	wire.Problem
	Undecided  bool                `json:"undecided"`
	Reason     admit.Reason        `json:"reason"`
	RetryAfter asjson.Milliseconds `json:"retry_after_ms"`
}

// The header of an answer that says that the node neither admitted nor denied, and why. A proxy knows
// by it what it is to decide itself: whatever else the node says denies.
const (
	undecidedHeader  = "Quotad-Undecided"
	undecidedFailure = "failure" // of the store, or the request ended
)

// busy returns why a call was not decided for want of time, and after how long it may come again. why
// is nil for all other errors.
func busy(err error) (retry time.Duration, why error) {
	if full, is := errors.AsType[*queue.Overload](err); is {
		return full.Retry, full
	}
	if err == errShed {
		return shedRetry, err
	}
	return 0, nil
}

// writeFailure answers a request that was to be decided with an error.
func writeFailure(w http.ResponseWriter, err error) {
	if retry, why := busy(err); why != nil {
		const code = http.StatusServiceUnavailable
		w.Header().Set(undecidedHeader, string(admit.QueueFull))
		setRetryAfter(w.Header(), admit.Decision{RetryAfter: retry})
		wire.Write(w, wire.ProblemType, code, busyProblem{Problem: wire.NewProblem(code, why.Error()),
			Undecided: true, Reason: admit.QueueFull, RetryAfter: asjson.Milliseconds(retry)})
		return
	}
	p := wire.ProblemOf(err)
	if p.Status == http.StatusServiceUnavailable {
		w.Header().Set(undecidedHeader, undecidedFailure)
	}
	wire.WriteProblem(w, p)
}

// patient returns when the caller of a request over HTTP gives up: after the time that it says in
// Grpc-Timeout, written as over gRPC (100m is 100 milliseconds), or after httpWait. named reports
// whether it says one.
func patient(r *http.Request) (ends time.Time, named bool) {
	wait := timeoutOf(r.Header.Get("Grpc-Timeout"))
	return time.Now().Add(cmp.Or(wait, httpWait)), wait != 0
}

// timeoutUnits are those of grpc-timeout.
var timeoutUnits = map[byte]time.Duration{'H': time.Hour, 'M': time.Minute, 'S': time.Second,
	'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond}

// timeoutOf reads a grpc-timeout: up to eight digits and a unit. It returns maxNamedWait at most, and
// 0 for all that is none.
func timeoutOf(text string) time.Duration {
	if len(text) < 2 || len(text) > 9 {
		return 0
	}
	amount, err := strconv.ParseUint(text[:len(text)-1], 10, 32)
	unit := timeoutUnits[text[len(text)-1]]
	if err != nil || unit == 0 {
		return 0
	}
	if amount > uint64(maxNamedWait/unit) {
		return maxNamedWait
	}
	return time.Duration(amount) * unit
}
