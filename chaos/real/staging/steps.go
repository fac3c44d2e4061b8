package staging

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quotad/quotad/chaos/play/caller"
	"github.com/quotad/quotad/chaos/real/scenario"
)

var (
	errOnlyCuts = errors.New(
		"not possible against a deployment that was not started here: its nodes can be cut off, and neither delay what they send nor lose a part of it")
	errOnlyBoth = errors.New(
		"not possible against a deployment that was not started here: a node cuts udp and tcp together; leave out only")
)

// Can implements scenario.Stage. Only cut, heal and flap are possible.
func (*Stage) Can(step scenario.Step) error {
	switch step.Do {
	case "cut", "heal", "flap":
	case "delay", "lose":
		return errOnlyCuts
	default:
		return scenario.ErrNotStarted
	}
	if step.Only != "" {
		return errOnlyBoth
	}
	return nil
}

// Do implements scenario.Stage. A cut lasts until it is healed, at most for the length of the
// rehearsal and a few seconds.
func (s *Stage) Do(ctx context.Context, step scenario.Step) (outcome string, err error) {
	if err := s.Can(step); err != nil {
		return "", err
	}
	switch step.Do {
	case "cut":
		return "", s.cutWays(ctx, step, min(s.length+margin, caller.MostCut))
	case "heal":
		return "", s.healWays(ctx, step)
	}
	return "", s.flap(ctx, step)
}

// flap cuts and heals again and again.
func (s *Stage) flap(ctx context.Context, step scenario.Step) error {
	for end := time.Now().Add(step.For); time.Now().Before(end); {
		if err := s.cutWays(ctx, step, min(step.Every+margin, caller.MostCut)); err != nil {
			return err
		}
		scenario.Sleep(ctx, step.Every)
		if err := s.healWays(context.WithoutCancel(ctx), step); err != nil {
			return err
		}
		if !scenario.Sleep(ctx, step.Every) {
			return ctx.Err()
		}
	}
	return nil
}

// cutWays cuts the ways between the regions of a step, at the nodes of the first.
func (s *Stage) cutWays(ctx context.Context, step scenario.Step, d time.Duration) error {
	direction := "both"
	if step.OneWay {
		direction = "out"
	}
	return eachWay(step, func(from, to string) error { return s.cut(ctx, from, to, direction, d) })
}

// healWays heals the ways between the regions of a step, at the nodes of both.
func (s *Stage) healWays(ctx context.Context, step scenario.Step) error {
	return eachWay(step, func(a, b string) error {
		var errs []error
		for _, pair := range [][2]string{{a, b}, {b, a}} {
			s.mu.Lock()
			cut := s.cuts[pair]
			s.mu.Unlock()
			if cut {
				errs = append(errs, s.heal(ctx, pair[0], pair[1]))
			}
		}
		return errors.Join(errs...)
	})
}

// eachWay calls do for all ways of a step concurrently.
func eachWay(step scenario.Step, do func(from, to string) error) error {
	var mu sync.Mutex
	var all sync.WaitGroup
	var errs []error
	for _, from := range step.Between {
		for _, to := range step.And {
			if from == to {
				continue
			}
			all.Go(func() {
				if err := do(from, to); err != nil {
					mu.Lock()
					defer mu.Unlock()
					errs = append(errs, err)
				}
			})
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

// Effect implements scenario.Stage. It is called after Facts. It returns how many packets the nodes
// that make the step's cuts have lost in all.
func (s *Stage) Effect(step scenario.Step) (packets int64) {
	for _, region := range step.Between {
		for _, p := range s.places[region] {
			packets += p.hasLost()
		}
	}
	return packets
}

// hasLost returns the number of packets that the node's cuts have lost.
func (p *place) hasLost() int64 {
	p.lost.Lock()
	defer p.lost.Unlock()
	return int64(p.lost.total)
}

// Facts implements scenario.Stage. It heals the remaining cuts, and so learns from every node how
// many packets its cuts have lost.
func (s *Stage) Facts() scenario.Facts {
	ctx, cancel := context.WithTimeout(context.Background(), healTimeout)
	defer cancel()
	unheard := each(s.all(), s.healAll(ctx))
	var facts scenario.Facts
	var lost int64
	for _, r := range s.nodes.Regions {
		var at string
		for _, p := range s.places[r.Name] {
			lost += p.hasLost()
			at += " " + p.HTTP
		}
		facts.Text = append(facts.Text, [2]string{"region " + r.Name, fmt.Sprintf("%d nodes, at%s",
			len(r.Nodes), at)})
	}
	facts.Text = append(facts.Text,
		[2]string{"between regions", fmt.Sprintf("%d packets lost by cuts", lost)})
	if unheard != nil {
		facts.Text = append(facts.Text, [2]string{"not healed by request", unheard.Error()})
	}
	return facts
}
