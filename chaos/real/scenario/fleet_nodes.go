package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quotad/quotad/chaos/real/process"
)

// eachNode carries out a step on nodes, one after the other.
func (f *Fleet) eachNode(ctx context.Context, s Step) (outcome string, err error) {
	for _, n := range f.nodesOf(s) {
		at := f.nodes[n]
		at.acting.Lock()
		more, failed := f.node(ctx, s, n)
		at.acting.Unlock()
		if more != "" {
			outcome = more
		}
		if err = errors.Join(err, failed); ctx.Err() != nil {
			break
		}
	}
	return outcome, err
}

// nodesOf returns the nodes that a step concerns.
func (f *Fleet) nodesOf(s Step) (all []*process.Node) {
	for _, r := range f.fleet.Regions {
		for i, n := range r.Nodes {
			if (s.Region == "" || s.Region == r.Name) && (s.Node == 0 || s.Node == i+1) {
				all = append(all, n)
			}
		}
	}
	return all
}

func (f *Fleet) node(ctx context.Context, s Step, n *process.Node) (string, error) {
	switch s.Do {
	case "kill":
		if len(s.Points) > 0 {
			return f.killAt(ctx, s, n)
		}
		f.setDown(n, true)
		return "", n.End()
	case "start":
		return "", f.start(ctx, n)
	case "restart":
		if !n.Running() {
			return "", fmt.Errorf("restart %s/%s: %w: it had ended by itself\n%s", n.Region, n.Name,
				process.ErrNotRunning, n.Output())
		}
		f.setDown(n, true)
		return "", errors.Join(n.Stop(ctx), f.start(ctx, n))
	case "pause":
		f.setPaused(n, true)
		return "", n.Pause()
	case "continue":
		f.setPaused(n, false)
		return "", n.Resume()
	case "fail-disk":
		return "", n.Disk.Fail()
	case "mend-disk":
		f.setDown(n, true)
		n.Kill()
		return "", errors.Join(n.Disk.Mend(), f.start(ctx, n))
	}
	return "", fmt.Errorf("a fleet cannot %s", s.Do)
}

// start starts a node that a step ended.
func (f *Fleet) start(ctx context.Context, n *process.Node) error {
	defer f.setDown(n, false)
	return n.Start(ctx)
}

// untilPoint is the time that a node has to reach a point of a transfer.
const untilPoint = 30 * time.Second

// killAt has a node kill itself at each point, and restarts it each time.
func (f *Fleet) killAt(ctx context.Context, s Step, n *process.Node) (string, error) {
	f.setDown(n, true)
	if err := n.End(); err != nil {
		return "", errors.Join(err, f.start(ctx, n))
	}
	deaths := 0
	for _, point := range s.Points {
		for range s.Times {
			n.SetEnv("QUOTAD_FAILPOINT=" + point)
			if err := dieAt(ctx, n, point); err != nil {
				n.SetEnv()
				return counted(deaths, "death"), errors.Join(err, f.start(ctx, n))
			}
			deaths++
		}
	}
	n.SetEnv()
	return counted(deaths, "death"), f.start(ctx, n)
}

// maxEarlyEnds is how often a node may end before it reaches a point because its Redis was slow.
// It is then restarted.
const maxEarlyEnds = 3

// dieAt starts a node and waits until it has killed itself at a point.
func dieAt(ctx context.Context, n *process.Node, point string) error {
	ctx, cancel := context.WithTimeout(ctx, untilPoint)
	defer cancel()
	for range 1 + maxEarlyEnds {
		if err := n.Launch(); err != nil {
			return err
		}
		select {
		case <-n.Exited():
		case <-ctx.Done():
			n.Kill()
			return fmt.Errorf("%s/%s did not come by %s: %w\n%s", n.Region, n.Name, point,
				ctx.Err(), n.Output())
		}
		if n.Killed() {
			return nil
		}
	}
	return fmt.Errorf("%s/%s ended %d times before it came by %s\n%s", n.Region, n.Name,
		1+maxEarlyEnds, point, n.Output())
}
