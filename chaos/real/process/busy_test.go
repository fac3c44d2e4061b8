//go:build !race

package process

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/real/load"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// busyLimits are shared half and half. In us, busy and long are asked for more than its half. Of
// the other limits all may be lent, so that us can have everything.
const busyLimits = `
version: 1
regions:
  us: {weight: 50}
  eu: {weight: 50}
limits:
  - {name: busy, domain: busy, key: [account], algorithm: fixed_window, limit: 6, window: 10s}
  - {name: long, domain: long, key: [a, b, c, d], algorithm: fixed_window, limit: 4, window: 60s}
  - {name: second, domain: second, key: [account], algorithm: fixed_window, limit: 300, window: 1s,
     lending_limit: 1}
  - {name: month, domain: month, key: [account], algorithm: fixed_window, limit: 9000, window: 720h,
     lending_limit: 1}
`

const (
	busyKeys     = 4000
	longKeys     = 18_000
	longValue    = 200 // bytes of each of four values
	busyRate     = 2000
	otherRate    = 300 // twice the entitlement of us
	busyFor      = 30 * time.Second
	busyBegins   = 10 * time.Second // time until all keys have been asked for
	oneWay       = 20 * time.Millisecond
	longestQueue = 4096 // checks of the busy keys under way
)

// BenchmarkBusyKeys has thousands of keys ask for rights. It prints what two other keys, which also
// need to borrow, get of what their limits allow, and what part of the traffic between regions was
// dropped. make keys runs it once.
func BenchmarkBusyKeys(b *testing.B) {
	quotad := binary(b)
	halves := cores(b)
	use(b, halves.served) // child processes inherit it
	f, err := Start(b.Context(), b, Config{Quotad: quotad, Limits: busyLimits, Lines: true,
		Regions: []RegionConfig{{Name: "us"}, {Name: "eu"}}})
	use(b, halves.loading)
	suite.Must(b, err)
	f.Change([]string{"us"}, []string{"eu"}, false, func(f *Fault) { f.Delay = oneWay })
	y := &busyFleet{b: b, Fleet: f, us: f.Region("us").Nodes[0], eu: f.Region("eu").Nodes[0]}
	y.client = client(b, y.us)
	y.plays("alone", nil)
	y.plays(fmt.Sprintf("beside %d keys", busyKeys), func(i uint64) *quotadv1.CheckRequest {
		return keysRequest("busy", strconv.Itoa(int(i%busyKeys)), 1)
	})
	y.plays(fmt.Sprintf("beside %d keys of %d bytes", longKeys, 4*longValue), longRequest)
}

// longRequest returns a request for one of many keys, each with four long values.
func longRequest(i uint64) *quotadv1.CheckRequest {
	v, two := fmt.Sprintf("%0*d", longValue, i%longKeys), int64(2)
	return &quotadv1.CheckRequest{Domain: "long", Cost: &two,
		Descriptors: map[string]string{"a": v, "b": v, "c": v, "d": v}}
}

// busyFleet is two regions, one of which has a high load.
type busyFleet struct {
	*Fleet
	b      *testing.B
	us, eu *Node
	client quotadv1.QuotaServiceClient
	rounds int
}

// other is a key that needs to borrow, with its outcomes by cell.
type other struct {
	limit string
	most  int64      // units that one cell allows
	mu    sync.Mutex // of asked
	asked map[int64]int64
	*paced
}

// asks asks for units of the key until ctx ends.
func (o *other) asks(ctx context.Context, y *busyFleet) {
	o.asked, o.paced = map[int64]int64{}, newPaced()
	account := "other-" + strconv.Itoa(y.rounds)
	ask := func(ctx context.Context, _ load.Request) {
		begun := time.Now()
		got, err := y.client.Check(ctx, keysRequest(o.limit, account, 1))
		o.note(got.GetDecision(), err, time.Since(begun))
		if err != nil {
			return
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if d := got.Decision; d.AtUs != 0 {
			o.asked[d.Cell]++
		}
	}
	g, err := load.NewGenerator(load.Config{Rate: load.Rate(otherRate), Do: ask})
	if err == nil {
		err = g.Run(ctx)
	}
	suite.Must(y.b, err)
	s := g.Stats()
	o.offered, o.sent = s.Due, s.Sent
}

// could returns how many units one limiter for all would have admitted of the decided requests.
func (o *other) could() (units int64) {
	for _, asked := range o.asked {
		units += min(asked, o.most)
	}
	return units
}

// plays asks for the other keys, beside busy ones if there are any, and prints what they got.
func (y *busyFleet) plays(name string, busy func(i uint64) *quotadv1.CheckRequest) {
	y.rounds++
	ctx, stop := context.WithCancel(y.b.Context())
	var flows sync.WaitGroup
	beside := newPaced()
	if busy != nil {
		flows.Go(func() { beside = checks(ctx, y.b, y.client, load.Rate(busyRate), busy) })
		time.Sleep(busyBegins)
	}
	us, eu, lines := scrape(y.b, y.us), scrape(y.b, y.eu), y.Lines.Stats()
	others := []*other{{limit: "second", most: 300}, {limit: "month", most: 9000}}
	asking, enough := context.WithTimeout(ctx, busyFor)
	var all sync.WaitGroup
	for _, o := range others {
		all.Go(func() { o.asks(asking, y) })
	}
	all.Wait()
	enough()
	usAfter, euAfter, linesAfter := scrape(y.b, y.us), scrape(y.b, y.eu), y.Lines.Stats()
	stop()
	flows.Wait()
	fmt.Printf("--- %s\n", name)
	if busy != nil {
		fmt.Printf("busy keys: %v; %d admitted, %d unanswered, %v\n", beside, beside.admitted,
			beside.failed, beside.reasons)
	}
	for _, o := range others {
		y.judge(name, o)
	}
	y.tell("us", us, usAfter)
	y.tell("eu", eu, euAfter)
	fmt.Printf("between regions: %d packets delayed, %d found no room in the proxy\n",
		linesAfter.Delayed-lines.Delayed, linesAfter.Crowded-lines.Crowded)
}

// judge prints what a key got. It fails if that is less than 95 % of what it could have got, or if
// the node had too little processor time for the figure to mean anything.
func (y *busyFleet) judge(name string, o *other) {
	could := o.could()
	fmt.Printf("limit %s: got %d of %d (%.1f %%); %v; %v\n", o.limit, o.admitted, could,
		100*float64(o.admitted)/float64(max(could, 1)), o.paced, o.reasons)
	if o.sent < o.offered*99/100 || o.decided < o.offered*95/100 {
		y.b.Errorf("limit %s, %s: %d offered, %d sent, %d decided by the store", o.limit, name,
			o.offered, o.sent, o.decided)
	}
	if 100*o.admitted < 95*could {
		y.b.Errorf("limit %s, %s: got %d of %d", o.limit, name, o.admitted, could)
	}
}

// tell prints the counters of a region's exchange, including what it dropped.
func (y *busyFleet) tell(region string, before, after scraped) {
	rate := func(name string) float64 { return (after[name] - before[name]) / busyFor.Seconds() }
	fmt.Printf("%s: dropped: %s\n", region, after.since(before, "quotad_events_dropped_total",
		"quotad_hints_refused_total", "quotad_gossip_dropped_total", "quotad_gossip_refused_total",
		"quotad_queue_refused_total", "quotad_asks_declined_total"))
	fmt.Printf("%s: exchange: %s\n", region, after.since(before, "quotad_exchange_total"))
	streams := rate(`quotad_gossip_bytes_total{direction="out",over="streams"}`)
	fmt.Printf("%s: gossip: %.0f B/s in packets, %.0f in streams (%.0f a state, if two go in 5 s); "+
		"%.0f buckets in view; CPU %.2f; RSS %.0f MB\n", region,
		rate(`quotad_gossip_bytes_total{direction="out",over="packets"}`), streams, streams*5/2,
		after["quotad_exchange_buckets"], rate("process_cpu_seconds_total"),
		after["process_resident_memory_bytes"]/1e6)
}
