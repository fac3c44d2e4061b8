package region_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/play/envoy"
)

// fleet is Envoys at nodes, four at each, that judge one limit.
type fleet struct {
	at      map[string][]*proxy
	judge   *pooled
	stop    chan struct{}
	running sync.WaitGroup
}

// fleetOf starts four Envoys at each of the nodes, with a demand of so many requests a second at
// each node.
func fleetOf(t *testing.T, c *cluster, judge *pooled, demand map[string]float64) *fleet {
	f := &fleet{at: map[string][]*proxy{}, judge: judge, stop: make(chan struct{})}
	for name, n := range c.running {
		for range 4 {
			p := &proxy{envoy: envoy.New(envoy.Config{Domain: "api"}), begun: time.Now(),
				judge: judge, demand: demand[name] / 4}
			f.at[name] = append(f.at[name], p)
			f.running.Go(func() { p.run(t, n.Node, 5*time.Millisecond, f.stop) })
			time.Sleep(time.Second / 3) // so that not all report at once
		}
	}
	return f
}

// want changes the demand at a node.
func (f *fleet) want(node string, demand float64) {
	for _, p := range f.at[node] {
		p.mu.Lock()
		p.demand = demand / 4
		p.mu.Unlock()
	}
}

// takes returns what was admitted at a node since the last call.
func (f *fleet) takes(t *testing.T, node string) (admitted int) {
	for _, p := range f.at[node] {
		_, allowed := p.takes(t)
		admitted += allowed
	}
	return admitted
}

func (f *fleet) end(t *testing.T) {
	close(f.stop)
	f.running.Wait()
	if f.judge.least < 0 {
		t.Errorf("%.0f admitted above the limit", -f.judge.least)
	}
}

// until returns after how long a node's Envoys first admit so many requests in a second, at most a
// minute.
func (f *fleet) until(t *testing.T, node string, least int) time.Duration {
	f.takes(t, node)
	for begun := time.Now(); time.Since(begun) < time.Minute; {
		time.Sleep(time.Second)
		got := f.takes(t, node)
		t.Logf("%s after %v: %d", node, time.Since(begun), got)
		if got >= least {
			return time.Since(begun)
		}
	}
	return time.Hour
}

// A region that lent its rights gets them back for its Envoys when its demand steps up, without
// waiting for a cell to end: within two reports, and the 2 s after which a report surely shows what
// was taken, a plan, two round trips and two ticks. Twice in a hundred times a third report is
// needed, where a lender's Envoy tells just before it has less. What is admitted is counted a second
// at a time.
func TestRightsOfEnvoysComeBack(t *testing.T) {
	suite.LongWithRace(t)
	d := documents.Parse(t, 1, thirds, assignable)
	for phase := range 2 {
		t.Run(fmt.Sprint("phase ", phase), func(t *testing.T) {
			started(t, d, []string{"us/n1", "eu/n1", "ap/n1"}, func(t *testing.T, c *cluster) {
				f := fleetOf(t, c, newPooled(1200, 1200),
					map[string]float64{"us/n1": 1300, "eu/n1": 40, "ap/n1": 40})
				time.Sleep(30*time.Second + time.Duration(phase)*5*time.Second/2)
				f.want("ap/n1", 400)
				if took := f.until(t, "ap/n1", 380); took > 30*time.Second {
					t.Errorf("95 %% of the entitlement came back after %v", took)
				}
				f.end(t)
			})
		})
	}
}

// Where there is enough in their region, Envoys have what they want within two reports of a step of
// their demand. What comes from other regions they have within one or two more: those that report
// first get more than their part, and give it up with their next report, seldom the one after. What
// is admitted is counted a second at a time.
func TestEnvoysFollowAStep(t *testing.T) {
	suite.LongWithRace(t)
	for name, c := range map[string]struct {
		regions, nodes []string
		demand         map[string]float64
		within         time.Duration
	}{
		"one region": {alone, []string{"us/n1"}, map[string]float64{"us/n1": 200},
			11 * time.Second},
		"three regions": {thirds, []string{"us/n1", "eu/n1", "ap/n1"},
			map[string]float64{"us/n1": 200, "eu/n1": 80, "ap/n1": 60}, 30 * time.Second},
	} {
		for phase := range 2 {
			t.Run(fmt.Sprint(name, ", phase ", phase), func(t *testing.T) {
				d := documents.Parse(t, 1, c.regions, assignable)
				started(t, d, c.nodes, func(t *testing.T, on *cluster) {
					f := fleetOf(t, on, newPooled(1200, 1200), c.demand)
					time.Sleep(20*time.Second + time.Duration(phase)*5*time.Second/2)
					f.want("us/n1", 1000)
					if took := f.until(t, "us/n1", 950); took > c.within {
						t.Errorf("95 %% of the demand is served after %v", took)
					}
					f.end(t)
				})
			})
		}
	}
}

// Of two nodes of a region each gets what it wants, or its half, and keeps it, whoever came first and
// whichever asks the store first for a cell. Of two regions the other one is silent, and lends
// nothing.
func TestNodesShareWhatEnvoysGet(t *testing.T) {
	for name, regions := range map[string][]string{"one region": {"us: {weight: 1}"},
		"two regions": {"us: {weight: 1}", "eu: {weight: 1}"}} {
		d := documents.Parse(t, 1, regions, assignable)
		for _, wants := range []int{300, 20} {
			for phase := range 2 {
				t.Run(fmt.Sprintf("%s, %d, phase %d", name, wants, phase), func(t *testing.T) {
					started(t, d, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
						f := fleetOf(t, c, newPooled(1200, 1200), map[string]float64{"us/n1": 2000, "us/n2": 0})
						time.Sleep(20*time.Second + time.Duration(phase)*5*time.Second/2)
						f.want("us/n2", float64(wants))
						if took := f.until(t, "us/n2", wants*95/100); took > 30*time.Second {
							t.Errorf("the second node gets what it wants after %v", took)
						}
						f.takes(t, "us/n2")
						time.Sleep(30 * time.Second) // three cells
						if got := f.takes(t, "us/n2"); got < 30*wants*9/10 {
							t.Errorf("then it gets %d in 30 s", got)
						}
						f.end(t)
					})
				})
			}
		}
	}
}
