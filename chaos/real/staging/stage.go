package staging

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/chaos/play/caller"
	"github.com/quotad/quotad/chaos/real/scenario"
	"github.com/quotad/quotad/policy/trust"
)

// Stage is a deployment to rehearse faults on, a [scenario.Stage]. Safe for
// concurrent use.
type Stage struct {
	nodes  *Nodes
	length time.Duration       // of the rehearsal
	places map[string][]*place // by region

	mu   sync.Mutex
	cuts map[[2]string]bool // from, to: cuts that are still to be healed
}

// place is a node of the deployment.
type place struct {
	Node
	region string
	calls  *caller.Caller

	lost struct {
		sync.Mutex
		known bool
		// last is the number of packets that its cuts have lost, as it last said. total is their
		// number since it was first asked.
		last, total uint64
	}
	looking sync.Mutex           // held while the node is asked for its incarnation
	life    atomic.Pointer[life] // its last answer; nil: none yet
}

// life is one start of a node. It is known to be the running one up to this number of dials.
type life struct{ incarnation, dials uint64 }

const (
	// margin is how much longer than needed a cut lasts by itself: a call that heals it takes as long.
	margin = 5 * time.Second
	// healTimeout bounds the healing at the end.
	healTimeout = 10 * time.Second
)

// Open prepares calls to the nodes for a rehearsal of this length, but calls none. It fails if a
// token or certificate cannot be used.
func Open(nodes *Nodes, length time.Duration) (*Stage, error) {
	s := &Stage{nodes: nodes, length: length, places: map[string][]*place{},
		cuts: map[[2]string]bool{}}
	for _, r := range nodes.Regions {
		for _, n := range r.Nodes {
			calls, err := n.caller(r.Name)
			if err != nil {
				return nil, fmt.Errorf("node %s/%s of the nodes file: %w", r.Name, n.Name, err)
			}
			s.places[r.Name] = append(s.places[r.Name], &place{Node: n, region: r.Name,
				calls: calls})
		}
	}
	return s, nil
}

// caller returns a caller of the node, with the token and certificates that its files have.
func (n Node) caller(region string) (*caller.Caller, error) {
	to := caller.Node{Region: region, Name: n.Name, HTTP: n.HTTP, Admin: n.Admin}
	var err error
	if n.Access.TokenFile != "" {
		if to.Token, err = trust.Token(n.Access.TokenFile); err != nil {
			return nil, fmt.Errorf("token_file: %w", err)
		}
	}
	to.TLS, err = n.Access.TLS(func(setting string) string { return setting })
	if err != nil {
		return nil, err
	}
	return caller.New(to)
}

// Close heals the remaining cuts, within ten seconds, and closes the connections. Cuts that it
// could not heal end by themselves.
func (s *Stage) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), healTimeout)
	defer cancel()
	err := s.Heal(ctx)
	for _, all := range s.places {
		for _, p := range all {
			p.calls.Close()
		}
	}
	return err
}

// Regions returns the names of the regions, in the order of the nodes file.
func (s *Stage) Regions() []string {
	var names []string
	for _, r := range s.nodes.Regions {
		names = append(names, r.Name)
	}
	return names
}

// Ask implements scenario.Stage. It uses HTTP.
func (s *Stage) Ask(ctx context.Context, region string, turn uint64,
	q scenario.Question) (oracle.Answer, bool) {
	places := s.places[region]
	if len(places) == 0 {
		return oracle.Answer{}, false
	}
	p := places[turn%uint64(len(places))]
	a, sent := p.calls.Ask(ctx, question(q), q.Bucket, q.Limit, p.lives)
	p.look(ctx)
	return placed(a, s.nodes.ClocksApart), sent
}

// placed widens an answer's time from Sent to Seen so that it includes the store time, if that lies
// outside by at most apart. The judge would otherwise not believe the answer. With such clocks,
// answers seem to take that much longer.
func placed(a oracle.Answer, apart time.Duration) oracle.Answer {
	at := time.UnixMicro(a.At)
	switch {
	case a.At == 0:
	case at.Before(a.Sent) && a.Sent.Sub(at) <= apart:
		a.Sent = at
	case at.After(a.Seen) && at.Sub(a.Seen) <= apart:
		a.Seen = at
	}
	return a
}

func question(q scenario.Question) caller.Question {
	return caller.Question{Domain: q.Domain, Descriptors: q.Descriptors, Cost: q.Cost}
}

// lives returns the start of the node that runs. It is a caller.Life.
func (p *place) lives() (uint64, bool) {
	l := p.life.Load()
	if l == nil {
		return 0, false
	}
	return l.incarnation, l.dials == p.calls.Dials()
}

// look asks the node for its incarnation, if there are new connections and nobody else is asking.
func (p *place) look(ctx context.Context) {
	dials := p.calls.Dials()
	if l := p.life.Load(); l != nil && l.dials == dials || !p.looking.TryLock() {
		return
	}
	defer p.looking.Unlock()
	if status, err := p.calls.Status(ctx); err == nil {
		p.life.Store(&life{status.Journal.Incarnation, dials})
	}
}

// all returns the nodes of all regions.
func (s *Stage) all() (all []*place) {
	for _, r := range s.nodes.Regions {
		all = append(all, s.places[r.Name]...)
	}
	return all
}

// each calls do for the nodes concurrently, and returns all errors.
func each(places []*place, do func(*place) error) error {
	errs := make([]error, len(places))
	var all sync.WaitGroup
	for i, p := range places {
		all.Go(func() { errs[i] = do(p) })
	}
	all.Wait()
	return errors.Join(errs...)
}
