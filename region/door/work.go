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
	// inHandByProcessor is what calls may have in hand, in bytes of their messages, for each processor: some two batches of
	// a hundred, which take a processor 10 ms.
	inHandByProcessor = 12 << 10
	// leastInHand is what they may have in hand however few processors there are, so that the heaviest call finds room.
	leastInHand = 16 << 10
	// heaviestCall is what a message counts for at most, however large it is, so that one always finds room in an idle node.
	heaviestCall = 4 << 10
	// callerParts and connParts are how many times what is free one caller may have in hand, and one of its connections.
	callerParts, connParts = 3, 2
	// maxBehind is how long large calls may wait for a processor, on average over behindCalls.
	maxBehind   = 5 * time.Millisecond
	behindCalls = 8
)

// Work bounds what calls have in hand: what is decoded, matched with limits and put before the store at a time, which is
// processor time. A single check that waits for the store has nothing in hand; a batch has until it is answered, for what
// is to be done with a hundred answers is most of its work. What finds no room is refused before it is decoded,
// or a flooded node would spend all its time reading what it then refuses, and hear its store too late.
//
// Nobody has a fixed part: a caller may have callerParts times in hand what is still free, and one of its connections
// connParts times. Whoever floods therefore leaves room, which a caller who has nothing in hand may take. A call is let in
// only if another of its size would find room, so large calls are refused before small ones. Safe for concurrent use.
type Work struct {
	most int64
	shed *prometheus.CounterVec

	mu             sync.Mutex
	used           int64
	callers, conns map[string]int64 // what each has in hand; those that have something
	behind         time.Duration    // what calls wait for a processor, over some behindCalls
}

// NewWork returns the bounds of a node that has all processors to itself.
func NewWork() *Work {
	return &Work{most: max(leastInHand, inHandByProcessor*int64(min(runtime.NumCPU(), runtime.GOMAXPROCS(0)))),
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

// Held is what a call has in hand.
type Held struct {
	work         *Work
	caller, conn string
	size         int64
	done         atomic.Bool
}

// Take takes a message of so many bytes in hand, of a caller's connection; nil: it has to be refused.
func (w *Work) Take(caller, conn string, bytes int) *Held {
	size := int64(min(bytes+callOverhead, heaviestCall))
	w.mu.Lock()
	defer w.mu.Unlock()
	free := w.most - w.used - 2*size // if another like it came, too
	has := w.callers[caller]
	if free < 0 || has > 0 && (has+2*size > callerParts*free || w.conns[conn]+2*size > connParts*free) {
		return nil
	}
	w.used += size
	w.callers[caller] += size
	w.conns[conn] += size
	return &Held{work: w, caller: caller, conn: conn, size: size}
}

// Behind notes how long a call waited for a processor before it had one, and says whether the processors are so far behind
// that it should be refused if it is large: so many came before it that small ones would come too late if each of them had
// its turn. One call that waited says nothing, for a machine may stand still for a moment.
func (w *Work) Behind(waited time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.behind += (waited - w.behind) / behindCalls
	return min(waited, w.behind) > maxBehind
}

// Done says that the call has nothing in hand any more. It may be called again.
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
}

func lessen(all map[string]int64, whose string, by int64) {
	if all[whose] -= by; all[whose] <= 0 {
		delete(all, whose)
	}
}

// Admission takes the message of a call in hand before it is decoded, or says why the call is refused. The context is the
// one the handler gets; waited is how long the call waited for a processor since it came.
type Admission func(ctx context.Context, message []byte, waited time.Duration) (*Held, error)

// Admit has the calls of these methods admitted first. Call it before services are registered.
func (c *Calls) Admit(by Admission, methods ...string) {
	c.admit = by
	for _, m := range methods {
		c.admitted[m] = true
	}
}

// call is what becomes of one call.
type call struct {
	waited time.Duration // for a processor
	held   atomic.Pointer[Held]
}

type callKey struct{}

// Waits says that a call only waits from now on, and has nothing in hand.
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
