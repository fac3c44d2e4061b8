package staging

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/chaos/caller"
	"github.com/quotad/quotad/chaos/oracle"
	"github.com/quotad/quotad/chaos/scenario"
	"github.com/quotad/quotad/region/peer"
)

// Stage is a deployment to rehearse faults on, a [scenario.Stage]. Safe for
// concurrent use.
type Stage struct {
	nodes  *Nodes
	length time.Duration // of the rehearsal
	client *peer.Client
	places map[string][]*place // by region

	mu   sync.Mutex
	cuts map[[2]string]bool // from, to: what was cut and is to be healed
}

// place is a node of the deployment.
type place struct {
	Node
	region string
	calls  *caller.Caller

	lost struct {
		sync.Mutex
		known       bool
		last, total uint64 // packets that its cuts have lost: as it said last, and since it was asked first
	}
	looking sync.Mutex           // held while the node is asked which start of it runs
	life    atomic.Pointer[life] // what it said; nil: nothing yet
}

// life is one start of a node, and until what count of dials it is known to be the one that runs.
type life struct{ incarnation, dials uint64 }

const (
	// callTimeout bounds a call to a peer port.
	callTimeout = 5 * time.Second
	// healTimeout bounds what is healed at the end.
	healTimeout = 10 * time.Second
)

// Open prepares calls to the nodes for a rehearsal of that length; it calls none.
// It fails if the certificate cannot be used.
func Open(nodes *Nodes, length time.Duration) (*Stage, error) {
	var trust *peer.TLS
	if nodes.TLS != nil {
		var err error
		if trust, err = peer.LoadCaller(*nodes.TLS); err != nil {
			return nil, fmt.Errorf("tls of the nodes file: %w", err)
		}
	}
	s := &Stage{nodes: nodes, length: length, client: peer.NewClient((&net.Dialer{}).DialContext, trust), places: map[string][]*place{}, cuts: map[[2]string]bool{}}
	for _, r := range nodes.Regions {
		for _, n := range r.Nodes {
			calls, err := caller.New(r.Name, n.Name, n.HTTP, "")
			if err != nil {
				return nil, errors.Join(err, s.client.Close())
			}
			s.places[r.Name] = append(s.places[r.Name], &place{Node: n, region: r.Name, calls: calls})
		}
	}
	return s, nil
}

// Close heals what is cut, within ten seconds, and lets go of the connections.
// What it could not heal ends by itself.
func (s *Stage) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), healTimeout)
	defer cancel()
	err := errors.Join(s.Heal(ctx), s.client.Close())
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

// Status returns the status of every node of a region that answers, in the order
// of the nodes file, and why others do not.
func (s *Stage) Status(ctx context.Context, region string) ([]caller.Status, error) {
	places := s.places[region]
	if places == nil {
		return nil, s.noRegion(region)
	}
	answers := make([]*caller.Status, len(places))
	err := each(places, func(p *place) error {
		status, err := p.calls.Status(ctx)
		for i := range places {
			if places[i] == p && err == nil {
				answers[i] = &status
			}
		}
		return err
	})
	var all []caller.Status
	for _, a := range answers {
		if a != nil {
			all = append(all, *a)
		}
	}
	return all, err
}

// Ask implements scenario.Stage. It asks over HTTP.
func (s *Stage) Ask(ctx context.Context, region string, turn uint64, q scenario.Question) (oracle.Answer, bool) {
	places := s.places[region]
	if len(places) == 0 {
		return oracle.Answer{}, false
	}
	p := places[turn%uint64(len(places))]
	a, sent := p.calls.Ask(ctx, question(q), q.Bucket, q.Limit, p.lives)
	p.look(ctx)
	return placed(a, s.nodes.ClocksApart), sent
}

// placed gives an answer the time between sending and seeing it in which its
// store's time lies, where it lies outside by no more than clocks may be apart:
// the judge would not believe it else. On such clocks answers seem to take that
// much longer.
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

// lives says which start of the node runs, as caller.Life.
func (p *place) lives() (uint64, bool) {
	l := p.life.Load()
	if l == nil {
		return 0, false
	}
	return l.incarnation, l.dials == p.calls.Dials()
}

// look asks the node which start of it runs, if there are new connections and
// nobody else is asking.
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

// each calls do for nodes at the same time, and returns all that went wrong.
func each(places []*place, do func(*place) error) error {
	errs := make([]error, len(places))
	var all sync.WaitGroup
	for i, p := range places {
		all.Go(func() { errs[i] = do(p) })
	}
	all.Wait()
	return errors.Join(errs...)
}
