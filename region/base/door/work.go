package door

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// inHandByProcessor bounds the work in hand for each processor, in bytes of the calls'
	// messages: some four batches of a hundred requests, or one or two of a thousand, which take a
	// processor 10 to 20 ms.
	inHandByProcessor = 12 << 10
	// leastInHand is the smallest bound of the work in hand, so that the heaviest call fits however
	// few processors there are.
	leastInHand = 16 << 10
	// heaviestCall is the most that a message counts for, so that a message of any size finds room
	// in an idle node.
	heaviestCall = 4 << 10
	// One caller may have callerParts times the free room in hand, and one of its connections
	// connParts times.
	callerParts, connParts = 3, 2
	// maxWaiting bounds the calls that wait for room in hand.
	maxWaiting = 2048
	// maxBehind is how long large calls may wait for a processor, on average over behindCalls.
	maxBehind   = 5 * time.Millisecond
	behindCalls = 8
)

// Work bounds the calls that are in hand, which means that they are decoded, matched with limits
// and sent to the store. That is processor time. A single check that waits for the store is not in
// hand. A batch is until it is answered, because handling its many answers is most of its work. A
// call that finds no room is refused before it is decoded. Otherwise a flooded node would spend its
// time reading calls that it then refuses, and would read its store's replies too late.
//
// No caller has a fixed part. A caller may have callerParts times the room that is still free in
// hand, and one of its connections connParts times. So a caller that floods leaves room that a
// caller with nothing in hand may take. A call is let in only if another of the same size would
// also fit, so large calls are refused before small ones. Calls may wait for room; callers take turns.
// Safe for concurrent use.
type Work struct {
	most int64
	shed *prometheus.CounterVec

	mu   sync.Mutex
	used int64
	// callers and conns hold what each has in hand, for those that have something.
	callers, conns map[string]int64
	// behind is how long calls wait for a processor, averaged over about behindCalls.
	behind  time.Duration
	outside turns[*Held] // calls that wait for room
}

// NewWork returns the bounds for a node that has all processors of the machine.
func NewWork() *Work {
	return &Work{most: max(leastInHand,
		inHandByProcessor*int64(min(runtime.NumCPU(), runtime.GOMAXPROCS(0)))),
		callers: map[string]int64{}, conns: map[string]int64{},
		shed: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "quotad_calls_shed_total",
			Help: "Calls that were refused before they were read, because the node had too much to do, by port."}, []string{"port"})}
}

// Describe implements prometheus.Collector.
func (w *Work) Describe(ch chan<- *prometheus.Desc) { w.shed.Describe(ch) }

// Collect implements prometheus.Collector.
func (w *Work) Collect(ch chan<- prometheus.Metric) { w.shed.Collect(ch) }

// Shed counts a call that was refused.
func (w *Work) Shed(port string) { w.shed.WithLabelValues(port).Inc() }

// Held is a call that is in hand.
type Held struct {
	waiter
	work *Work
	conn string
	size int64
	may  func() bool
	done atomic.Bool
}

// Take takes a message of a caller's connection in hand. It returns nil if there is no room. bytes is
// the size of the message.
func (w *Work) Take(caller, conn string, bytes int) *Held {
	return w.Wait(context.Background(), caller, conn, bytes, time.Time{}, false, nil)
}

// Wait takes a message in hand as Take does, and waits for room until a time or until ctx ends. If
// behind is true, and others are in hand, it waits until one of them has ended. may reports whether
// the call may come in when there is room; nil: it may. may must not use the Work.
func (w *Work) Wait(ctx context.Context, caller, conn string, bytes int, until time.Time,
	behind bool, may func() bool) *Held {
	h := &Held{work: w, conn: conn, size: int64(min(bytes+callOverhead, heaviestCall)), may: may}
	h.caller, h.until = caller, until
	if w.comes(h, behind) {
		return h
	}
	if h.turn == nil {
		return nil
	}
	over := time.NewTimer(time.Until(until))
	defer over.Stop()
	select {
	case <-h.turn:
		return h
	case <-over.C:
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.outside.leaves(&h.waiter) { // it came in meanwhile
		return h
	}
	return nil
}

// comes takes a call in hand and returns true. If there is no room it makes the call wait.
func (w *Work) comes(h *Held, behind bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if (!behind || w.used == 0) && w.in(h) {
		return true
	}
	if h.came = time.Now(); h.came.Before(h.until) && w.outside.waiting < maxWaiting {
		w.outside.comes(h)
	}
	return false
}

// in takes a call in hand if there is room.
func (w *Work) in(h *Held) bool {
	// This leaves room for another call of the same size.
	free := w.most - w.used - 2*h.size
	has := w.callers[h.caller]
	if free < 0 || has > 0 && (has+2*h.size > callerParts*free ||
		w.conns[h.conn]+2*h.size > connParts*free) || h.may != nil && !h.may() {
		return false
	}
	w.used += h.size
	w.callers[h.caller] += h.size
	w.conns[h.conn] += h.size
	return true
}

// Behind records how long a call waited for a processor. It reports whether a large call should
// wait because the processors are too far behind: if each large call had its turn then, small ones
// would be late. One call that waited long is not enough, because a machine may stand still for a
// moment.
func (w *Work) Behind(waited time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.behind += (waited - w.behind) / behindCalls
	return min(waited, w.behind) > maxBehind
}

// Done says that the call is no longer in hand. It may be called again.
func (h *Held) Done() {
	if already := h.done.Swap(true); already {
		return
	}
	w := h.work
	w.mu.Lock()
	defer w.mu.Unlock()
	w.used -= h.size
	lessen(w.callers, h.caller, h.size)
	lessen(w.conns, h.conn, h.size)
	if w.outside.waiting > 0 {
		w.outside.next(time.Now(), w.in)
	}
}

func lessen(all map[string]int64, whose string, by int64) {
	if all[whose] -= by; all[whose] <= 0 {
		delete(all, whose)
	}
}

// Admission takes the message of a call in hand before it is decoded, or returns the error with
// which the call is refused. ctx is that of the handler. waited is how long the call waited for a
// processor.
type Admission func(ctx context.Context, message []byte, waited time.Duration) (*Held, error)

// Admit makes calls of the given methods pass an Admission first. Call it before services are
// registered.
func (c *Calls) Admit(by Admission, methods ...string) {
	c.admit = by
	for _, m := range methods {
		c.admitted[m] = true
	}
}

// takeInHand makes a call pass the Admission.
func (c *Calls) takeInHand(ctx context.Context, message []byte, waited time.Duration,
	one *call) error {
	held, err := c.admit(ctx, message, waited)
	if err == nil {
		one.held.Store(held)
	}
	return err
}

// call is one call that may pass an Admission.
type call struct{ held atomic.Pointer[Held] }

type callKey struct{}

// Waits says that the call with this context only waits from now on, so it is no longer in hand.
func Waits(ctx context.Context) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		c.done()
	}
}

func (c *call) done() {
	if h := c.held.Load(); h != nil {
		h.Done()
	}
}
