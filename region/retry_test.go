package region_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// obedient is a fleet of callers each of whom has one request, and comes again when it is told to
// until it is admitted.
type obedient struct {
	t       *testing.T
	ends    func(time.Time) time.Time // when the window ends that a time is in
	needs   bool                      // it finds out after each denial what was needed
	callers sync.WaitGroup
	over    chan struct{}

	mu                   sync.Mutex
	denied, again        int             // denials, and those of requests that came again
	toldNothing, tooLate int             // of them, those that told no time, or one after the window's end
	excess               []time.Duration // of what was told, beyond one and a half times what was needed and a tick
	told                 []time.Duration
}

// comes has a caller ask a node for a unit.
func (o *obedient) comes(n *running) {
	for tries := 0; ; tries++ {
		d, err := n.Check(o.t.Context(), request("a"))
		if err != nil || d.Allowed {
			return
		}
		now := time.Now()
		o.mu.Lock()
		o.denied++
		o.again += min(tries, 1)
		if d.RetryAfter <= 0 {
			o.toldNothing++
		}
		if now.Add(d.RetryAfter).After(o.ends(now).Add(time.Millisecond)) {
			o.tooLate++
		}
		o.told = append(o.told, d.RetryAfter)
		o.mu.Unlock()
		if d.RetryAfter <= 0 {
			return
		}
		if o.needs {
			o.callers.Go(func() { o.need(n, d.RetryAfter) })
		}
		select {
		case <-time.After(d.RetryAfter):
		case <-o.over:
			return
		}
	}
}

// need finds out when a request would have been admitted, asked anew each tick.
func (o *obedient) need(n *running, told time.Duration) {
	const tick = 200 * time.Millisecond
	for needed := tick; needed < 20*time.Second; needed += tick {
		select {
		case <-time.After(tick):
		case <-o.over:
			return
		}
		if d, err := n.Peek(o.t.Context(), request("a")); err == nil && d.Allowed {
			o.mu.Lock()
			o.excess = append(o.excess, told-needed*3/2-tick)
			o.mu.Unlock()
			return
		}
	}
}

// fleetAsks is what a fleet asks of a limit.
type fleetAsks struct {
	units   int           // of the limit, in a window
	lasts   time.Duration // of what is asked in each of so many windows
	windows int
	ends    func(time.Time) time.Time
	comes   comes
}

// comes is how units of a limit come free.
type comes int

const (
	together comes = iota
	oneByOne       // of a bucket
	lentOnly       // of a bucket that in three regions needs what the others lend, a second at a time
)

// Where a fleet's callers come.
const (
	inOne       = "one region"
	inOneAtOnce = "one region, at once" // all that come in a window
	twoNodes    = "two nodes of a region, at once"
	moving      = "three regions, moving"         // seven of ten come to one, another one each few windows
	atOnce      = "three regions, at once in one" // all that come in a window
)

// offer has callers come, for so many times the limit.
func (o *obedient) offer(c *cluster, where string, a fleetAsks, load float64) {
	nodes := []*running{c.running["us/n1"], c.running["eu/n1"], c.running["ap/n1"]}
	if where == twoNodes {
		nodes = []*running{c.running["us/n1"], c.running["us/n2"]}
	}
	chance := rand.New(rand.NewPCG(1, 2))
	come := func(n *running) { o.callers.Go(func() { o.comes(n) }) }
	every := float64(a.lasts) / (load * float64(a.units))
	for begun, window := time.Now(), 0; window < a.windows; window++ {
		ends := begun.Add(time.Duration(window+1) * a.lasts)
		burst := where != inOne && where != moving
		for n := 0; burst && n < int(load*float64(a.units)); n++ {
			at := 0
			if where == twoNodes {
				at = n % 2
			}
			come(nodes[at])
			time.Sleep(time.Duration(chance.IntN(200_000))) // in a few milliseconds
		}
		for !burst && time.Now().Before(ends) {
			at := 0
			if where == moving {
				at = []int{0, 0, 0, 0, 0, 0, 0, 1, 1, 2}[chance.IntN(10)] + 4*window/a.windows
			}
			come(nodes[at%len(nodes)])
			time.Sleep(time.Duration(chance.ExpFloat64() * every))
		}
		time.Sleep(time.Until(ends))
	}
}

// TestObedientCallers: who comes again when a denial says so is admitted then, as long as less than
// the limit is asked for in all, though the units were in other regions. Nobody is told a time that
// is much longer than needed, nor one after the window's end.
func TestObedientCallers(t *testing.T) {
	suite.LongWithRace(t)
	window := func(length time.Duration) func(time.Time) time.Time {
		return func(now time.Time) time.Time { return now.Truncate(length).Add(length) }
	}
	month := func(now time.Time) time.Time {
		return time.Date(now.UTC().Year(), now.UTC().Month()+1, 1, 0, 0, 0, 0, time.UTC)
	}
	within := func(length time.Duration) func(time.Time) time.Time {
		return func(now time.Time) time.Time { return now.Add(length) }
	}
	loads, places := []float64{0.8, 1, 2}, []string{inOne, inOneAtOnce, twoNodes, moving, atOnce}
	if testing.Short() {
		loads, places = loads[:1], places[1:]
	}
	for _, l := range []struct {
		name, limit string
		fleetAsks
	}{
		{"second", "limit: 500, window: 1s", fleetAsks{500, time.Second, 8, window(time.Second), together}},
		{"minute", "limit: 600, window: 1m", fleetAsks{600, time.Minute, 3, window(time.Minute), together}},
		{"month", "limit: 600, window: month", fleetAsks{600, time.Minute, 1, month, together}},
		{"sliding minute", "limit: 600, window: 1m, algorithm: sliding_window_counter",
			fleetAsks{600, time.Minute, 1, within(2 * time.Minute), together}},
		{"tokens", "limit: 100, burst: 100, window: 1s, algorithm: token_bucket",
			fleetAsks{100, time.Second, 4, within(time.Second), oneByOne}},
		{"few tokens", "limit: 100, burst: 10, window: 1s, algorithm: token_bucket",
			fleetAsks{100, time.Second, 4, within(time.Second), lentOnly}},
		{"queue", "limit: 100, burst: 10, window: 1s, algorithm: leaky_bucket",
			fleetAsks{100, time.Second, 4, within(time.Second), lentOnly}},
	} {
		for _, where := range places {
			if l.name == "month" && where == moving {
				continue // at such a pace no region has any to spare
			}
			if l.comes == together && where == twoNodes {
				continue // as of one node
			}
			for _, load := range loads {
				t.Run(fmt.Sprintf("%s, %s, %v", l.name, where, load), func(t *testing.T) {
					nodes, regions := []string{"us/n1", "eu/n1", "ap/n1"}, threeRegions
					switch where {
					case inOne, inOneAtOnce:
						regions, nodes = alone, nodes[:1]
					case twoNodes: // each tells turns of its own
						regions, nodes = alone, []string{"us/n1", "us/n2"}
					}
					d := documents.Parse(t, 1, regions, "name: l, "+l.limit)
					started(t, d, nodes, func(t *testing.T, c *cluster) {
						time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
						o := &obedient{t: t, ends: l.ends, needs: load < 1, over: make(chan struct{})}
						o.offer(c, where, l.fleetAsks, load)
						time.Sleep(2 * time.Second)
						close(o.over)
						o.callers.Wait()
						o.tell(load, where, l.comes)
					})
				})
			}
		}
	}
}

// tell prints what was seen, and judges it. At 0.8 of the limit one in a hundred is denied again at
// most, or one of few.
func (o *obedient) tell(load float64, where string, units comes) {
	slices.Sort(o.told)
	slices.Sort(o.excess)
	line := fmt.Sprintf("%d denied, %d of requests that came again", o.denied, o.again)
	if n := len(o.told); n > 0 {
		line += fmt.Sprintf(" (%.1f %%); told %v to %v, median %v", 100*float64(o.again)/float64(o.denied),
			o.told[0].Round(time.Millisecond), o.told[n-1].Round(time.Millisecond),
			o.told[n/2].Round(time.Millisecond))
	}
	lent := where == moving || where == atOnce
	if n := len(o.excess); n > 0 {
		line += fmt.Sprintf("; beyond 1.5 of what was needed and a tick at most %v",
			o.excess[n-1].Round(time.Millisecond))
		// Of a bucket, units of others may come earlier than was said, and then for a moment a token is
		// there that is another's: whoever came by chance would have it.
		if o.excess[n-1] > 0 && (units == together || !lent) ||
			o.excess[n-1] > 100*time.Millisecond && units == oneByOne {
			o.t.Errorf("%v longer than it may be", o.excess[n-1])
		}
	}
	o.t.Log(line)
	if o.toldNothing > 0 || o.tooLate > 0 {
		o.t.Errorf("%d were told nothing, %d a time after the window's end", o.toldNothing, o.tooLate)
	}
	// With small bursts a region whose demand moves has less than it wants for as long as it has it. With
	// large ones some thirty of thousands are denied, and a few of these again.
	most := max(o.denied/100, 1)
	if units == oneByOne && where == moving {
		most = 6
	}
	if judged := units != lentOnly || where == inOne || where == inOneAtOnce || where == atOnce; judged && load < 1 && o.again > most {
		o.t.Errorf("%d of %d were denied again", o.again, o.denied)
	}
}
