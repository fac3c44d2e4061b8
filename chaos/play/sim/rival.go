package sim

import (
	"fmt"
	"strings"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/play/workload"
	"github.com/quotad/quotad/chaos/rivals"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
)

// Quotad is quotad as one of the compared systems of chaos/rivals: a simulated world without
// faults.
type Quotad struct {
	// Borrow has requests wait for rights of other regions (on_exhausted: borrow).
	Borrow bool
	// Again is how many times a denied caller comes again, each time a second later.
	Again int
	// Options switch parts of the protocol off.
	Options exchange.Options
}

// Name implements rivals.System.
func (q Quotad) Name() string {
	if q.Borrow {
		return "quotad, borrowing"
	}
	return "quotad"
}

// packetHeaders is the size of the IP and UDP headers that are counted for each message, in bytes,
// as for the systems it is compared with.
const packetHeaders = 28

// Run implements rivals.System. Before the first request the regions have a whole number of
// windows, at least two seconds, to get to know each other.
func (q Quotad) Run(load *workload.Workload, n rivals.Network, seed uint64) rivals.Result {
	warm := (2*allocator.Second + load.Window - 1) / load.Window * load.Window
	p := &Plan{Seed: seed, Keys: []string{"key"}, OneWay: n.OneWay,
		End: warm + load.Length + int64(1+q.Again)*2*allocator.Second, Document: q.document(load), Options: q.Options}
	p.Heal = p.End
	for i := range load.Regions {
		p.Regions = append(p.Regions, RegionPlan{Name: fmt.Sprintf("r%d", i), Weight: 1, Nodes: 1})
	}
	w, err := newWorld(p, nil, nil)
	if err != nil {
		// A valid workload gives a valid document.
		panic(fmt.Sprintf("workload %s: %v", load.Name, err))
	}
	w.counts.Deeds = map[Deed]int64{}
	res := rivals.Result{Admitted: make([]bool, len(load.Arrivals)),
		Waited: make([]int64, len(load.Arrivals)), Decided: make([]int64, len(load.Arrivals))}
	for i, a := range load.Arrivals {
		w.at(warm+a.At, func() {
			rq := &request{q: w.question("api", 0)}
			rq.q.Cost = quantity.Units(a.Cost)
			left := q.Again
			rq.done = func(d admit.Decision) {
				if left--; !d.Allowed && left >= 0 {
					again := &request{q: rq.q, done: rq.done}
					w.at(w.now+allocator.Second, func() { w.ask(w.regions[a.Region].nodes[0], again) })
					return
				}
				res.Admitted[i], res.Waited[i], res.Decided[i] = d.Allowed, w.now-warm-a.At,
					w.now-warm
			}
			w.ask(w.regions[a.Region].nodes[0], rq)
		})
	}
	var before Counts
	w.at(warm, func() { before = w.counts })
	const sample = allocator.Second / 20
	for at := int64(0); at < load.Length; at += sample {
		w.at(warm+at, func() { res.Shares = append(res.Shares, w.shares(at)) })
	}
	w.run(p.End)
	w.must(asError(w.broken))
	c := w.counts
	res.Messages = c.Traded - before.Traded + c.Hinted - before.Hinted
	res.Bytes = c.Bytes - before.Bytes + c.Hints - before.Hints + res.Messages*packetHeaders
	return res
}

func asError(v *Violation) error {
	if v == nil {
		return nil
	}
	return fmt.Errorf("%v", v)
}

// document returns the limits document for a workload.
func (q Quotad) document(load *workload.Workload) string {
	var b strings.Builder
	b.WriteString("regions:\n")
	for i := range load.Regions {
		fmt.Fprintf(&b, "  r%d: {weight: %d}\n", i, max(load.Entitlements[i], 1))
	}
	fmt.Fprintf(&b, "limits:\n  - {name: compared, domain: api, key: [account], algorithm: %s, limit: %d, window: %dms", load.Algorithm, load.Limit, load.Window/1000)
	if load.Burst > 0 {
		fmt.Fprintf(&b, ", burst: %d", load.Burst)
	}
	if q.Borrow {
		b.WriteString(", on_exhausted: borrow")
	}
	b.WriteString("}\n")
	return b.String()
}

// shares returns what each region may admit now of the first limit's first key.
func (w *world) shares(at int64) rivals.Sample {
	s := rivals.Sample{At: at}
	for _, r := range w.regions {
		held, _ := r.store.inspect(w.limits[0].buckets[0])
		s.Share = append(s.Share, int64(held.Share))
	}
	return s
}
