//go:build envoy

package envoy

import (
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/real/process"
)

// The limit of rlqs-limits.yaml.
const (
	rlqsRate  = 1000
	rlqsBurst = 1000
)

// TestRLQS: four Envoys over two regions share one bucket and are never above it. They use most of
// it; one region has it all when the other one asks for nothing.
func TestRLQS(t *testing.T) {
	fleet := startRLQSFleet(t)
	a := startApp(t)
	var envoys []*proxy
	for _, r := range fleet.Regions {
		for range 2 {
			envoys = append(envoys, startEnvoy(t, "rlqs.yaml", a, addresses(r)))
		}
	}
	tally := watch(t, a)
	all := tally.during(t, 25*time.Second, envoys...)
	one := tally.during(t, 25*time.Second, envoys[:2]...)
	for what, got := range map[string]phase{"four Envoys": all, "those of one region": one} {
		fmt.Printf("RLQS, %s: %d requests, %d admitted in %v; %d of %d in the last 10 s\n", what,
			got.asked, got.admitted, got.took.Round(time.Millisecond), got.last, 10*rlqsRate)
		if got.last < min(10*rlqsRate, got.lastAsked)/2 {
			t.Errorf("%s get %d of %d in 10 s", what, got.last, got.lastAsked)
		}
	}
	tally.judge(t)
	reached, counted := 0, 0
	for _, p := range envoys {
		counted += p.counters(t)["http.clients.downstream_rq_2xx"]
	}
	if reached = a.count(""); counted != reached || reached != all.admitted+one.admitted {
		t.Errorf("the app counts %d, the Envoys %d, and their clients %d", reached, counted, all.admitted+one.admitted)
	}
	for _, p := range envoys {
		if !p.Running() {
			t.Errorf("an Envoy ended:\n%s", p.Output())
		}
	}
}

// startRLQSFleet starts two regions with the limits of the recipe, of which each has a weight.
func startRLQSFleet(t *testing.T) *process.Fleet {
	t.Helper()
	limits, err := os.ReadFile("rlqs-limits.yaml")
	suite.Must(t, err)
	fleet, err := process.Start(t.Context(), t, process.Config{Quotad: quotad(t),
		Limits:  apply(t, string(limits), edit{"  here: {weight: 1}", "  east: {weight: 2}\n  west: {weight: 1}"}),
		Regions: []process.RegionConfig{{Name: "east", Nodes: 2}, {Name: "west"}}})
	suite.Must(t, err)
	return fleet
}

// tally is how many requests the app had had at each moment.
type tally struct {
	app    *app
	mu     sync.Mutex
	points []point
}

type point struct {
	at    time.Time
	count int
}

// watch notes what the app counts, until the test ends.
func watch(t *testing.T, a *app) *tally {
	t.Helper()
	w := &tally{app: a}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		every := time.NewTicker(50 * time.Millisecond)
		defer every.Stop()
		for {
			select {
			case <-over:
				return
			case <-every.C:
				p := point{time.Now(), a.count("")}
				w.mu.Lock()
				w.points = append(w.points, p)
				w.mu.Unlock()
			}
		}
	}()
	t.Cleanup(func() {
		close(over)
		<-done
	})
	return w
}

// onTheWay is for how long at most a request is on its way from an Envoy to the app, on a starved
// machine.
const onTheWay = 500 * time.Millisecond

// judge wants that between any two moments no more was admitted than one bucket of the limit admits.
func (w *tally) judge(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	worst := 0.0
	for i, from := range w.points {
		for _, to := range w.points[i+1:] {
			most := rlqsBurst + rlqsRate*(to.at.Sub(from.at)+onTheWay).Seconds()
			if got := float64(to.count - from.count); got > most {
				t.Fatalf("in %v %v were admitted, at most %v may be", to.at.Sub(from.at), got, most)
			} else {
				worst = max(worst, got/most)
			}
		}
	}
	fmt.Printf("RLQS: of what one bucket admits at most %.0f %% were admitted, between any two of %d moments\n",
		100*worst, len(w.points))
}

// phase is what clients had in a time.
type phase struct {
	asked, admitted int
	lastAsked, last int // the same in its last 10 s
	took            time.Duration
}

// during has clients of some Envoys ask 2,000 times a second in all, or as often as they can.
func (w *tally) during(t *testing.T, d time.Duration, envoys ...*proxy) (all phase) {
	t.Helper()
	begun, before := time.Now(), w.app.count("")
	var mu sync.Mutex
	var work sync.WaitGroup
	for i, p := range envoys {
		for j := range 4 {
			c := p.client(t, fmt.Sprintf("127.0.%d.%d", 6+i, 1+j))
			work.Go(func() {
				every := time.NewTicker(time.Duration(len(envoys)) * 4 * time.Second / 2000)
				defer every.Stop()
				for time.Since(begun) < d {
					<-every.C
					r, err := c.ask(t.Context(), "GET", "/", "X-Account", "acme")
					mu.Lock()
					all.note(t, r, err, time.Since(begun) > d-10*time.Second)
					mu.Unlock()
				}
			})
		}
	}
	work.Wait()
	all.took = time.Since(begun)
	if arrived := w.app.count("") - before; arrived != all.admitted {
		t.Errorf("%d arrived at the app, and %d were admitted", arrived, all.admitted)
	}
	return all
}

func (p *phase) note(t *testing.T, a answer, err error, last bool) {
	p.asked++
	if last {
		p.lastAsked++
	}
	switch {
	case err == nil && a.code == http.StatusOK:
		p.admitted++
		if last {
			p.last++
		}
	case err != nil || a.code != http.StatusTooManyRequests:
		t.Errorf("%v, %v", a, err)
	}
}
