package scenario

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/chaos/real/process"
	"github.com/quotad/quotad/policy/strictyaml"
)

// Fleet is a stage of processes that are started on this machine for one scenario.
type Fleet struct {
	scenario *Scenario
	fleet    *process.Fleet
	quotad   string

	mu      sync.Mutex
	version int64
	nodes   map[*process.Node]*nodeState
	envoys  map[string][]*proxy                       // by region
	before  map[strictyaml.Position]process.LineStats // counts of a step's ways when the step began
}

// nodeState is the state of one node of a fleet.
type nodeState struct {
	acting sync.Mutex // held during a step

	// Guarded by the fleet's mutex.
	down   bool // a step ended it
	told   bool // it was reported that the node ended by itself
	paused bool // by a step
}

// StartFleet starts the regions of a scenario with the binary quotad, and returns when all of them
// are in touch. All processes end with the scope.
func StartFleet(ctx context.Context, scope process.Scope, s *Scenario, quotad string,
	seed uint64) (*Fleet, error) {
	c := process.Config{Quotad: quotad, Limits: s.Document(1, nil), Lines: true, Seed: seed,
		Settings: []string{"log_level: warn"}}
	for _, r := range s.Regions {
		rc := process.RegionConfig{Name: r.Name, Nodes: r.Nodes}
		for _, step := range s.Steps {
			rc.Clock = rc.Clock || step.Do == "clock" && step.Region == r.Name
			rc.Replica = rc.Replica || step.Do == "failover-redis" && step.Region == r.Name
			rc.Disks = rc.Disks || step.Do == "fail-disk" && step.Region == r.Name
		}
		if rc.Disks {
			if err := process.DisksWork(); err != nil {
				return nil, fmt.Errorf("scenario %s cannot be played here: %w", s.Name, err)
			}
		}
		c.Regions = append(c.Regions, rc)
	}
	f := &Fleet{scenario: s, quotad: quotad, version: 1, nodes: map[*process.Node]*nodeState{},
		before: map[strictyaml.Position]process.LineStats{}}
	var err error
	if f.fleet, err = process.Start(ctx, scope, c); err != nil {
		return nil, err
	}
	for _, r := range f.fleet.Regions {
		for _, n := range r.Nodes {
			f.nodes[n] = &nodeState{}
		}
	}
	if err := f.startEnvoys(scope); err != nil {
		return nil, err
	}
	return f, nil
}

// Ask implements Stage.
func (f *Fleet) Ask(ctx context.Context, region string, turn uint64, q Question) (oracle.Answer,
	bool) {
	if len(q.Envoys) > 0 {
		return f.envoys[region][q.Envoys[turn%uint64(len(q.Envoys))]-1].ask(region, q), true
	}
	nodes := f.fleet.Region(region).Nodes
	n := nodes[turn%uint64(len(nodes))]
	return n.Ask(ctx, process.Question{Domain: q.Domain, Descriptors: q.Descriptors, Cost: q.Cost,
		GRPC: true}, q.Bucket, q.Limit)
}

// Can implements Stage. A fleet can do every step. A nil fleet, not started yet, gives the same
// answer.
func (*Fleet) Can(Step) error { return nil }

// Do implements Stage.
func (f *Fleet) Do(ctx context.Context, s Step) (string, error) {
	if s.between() {
		return "", f.between(ctx, s)
	}
	switch s.Do {
	case "apply-policy":
		return f.apply(ctx, s)
	case "kill-redis", "start-redis", "flush-redis", "pause-redis", "continue-redis",
		"failover-redis":
		return f.redis(ctx, s, f.fleet.Region(s.Region))
	case "cut-envoys":
		return f.cutEnvoys(s), nil
	case "clock":
		return fmt.Sprintf("it is %s ahead now", f.fleet.Region(s.Region).Clock.Move(s.By)), nil
	}
	return f.eachNode(ctx, s)
}

// Facts implements Stage.
func (f *Fleet) Facts() Facts {
	lines := f.fleet.Lines.Stats()
	var facts Facts
	for _, r := range f.fleet.Regions {
		redis := "a redis-server"
		if r.Clock != nil {
			redis = "an embedded Redis with a clock of its own"
		}
		facts.Text = append(facts.Text, [2]string{"region " + r.Name,
			counted(len(r.Nodes), "node") + " and " + redis})
	}
	for _, r := range f.scenario.Regions {
		for i, p := range f.envoys[r.Name] {
			facts.Envoys = append(facts.Envoys, EnvoyFacts{r.Name, i + 1, p.client.Rebuilt(),
				p.client.Faults()})
		}
	}
	if n := len(facts.Envoys); n > 0 {
		facts.Text = append(facts.Text, [2]string{"Envoys", fmt.Sprintf(
			"%d, played by this process as Envoy's source does", n)})
	}
	facts.Text = append(facts.Text,
		[2]string{"quotad", f.quotad},
		[2]string{"machine", fmt.Sprintf("%s/%s, %d CPUs", runtime.GOOS, runtime.GOARCH,
			runtime.NumCPU())},
		[2]string{"between regions",
			fmt.Sprintf("%d packets lost, %d streams held up, %d packets and pieces of streams slowed down, %d turned away by full queues",
				lines.Lost, lines.Stalled, lines.Delayed, lines.Crowded)})
	return facts
}

// setDown records that a step ends a node, or starts it again.
func (f *Fleet) setDown(n *process.Node, down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.nodes[n]
	at.down, at.told, at.paused = down, false, false
}

// setPaused records that a step pauses a node, or lets it continue.
func (f *Fleet) setPaused(n *process.Node, paused bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes[n].paused = paused
}
