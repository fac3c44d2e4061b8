package staging

import (
	"context"
	"fmt"
	"slices"

	"github.com/quotad/quotad/chaos/real/scenario"
)

// Check returns the reasons why the deployment cannot be rehearsed on: a node does not answer, is
// not the node that the file says, is not ready, is out of touch with a region, makes no cuts, or
// decides by other limits than the scenario's. To find out whether nodes make cuts, Check asks each
// to heal its cuts from all other regions, whoever made them. It spends no units.
func (s *Stage) Check(ctx context.Context, sc *scenario.Scenario) error {
	if err := s.fits(sc); err != nil {
		return err
	}
	return each(s.all(), func(p *place) error {
		status, err := p.calls.Status(ctx)
		switch {
		case err != nil:
			return told(err)
		case status.Region != p.region || status.Node != p.Name:
			return fmt.Errorf("at %s is %s/%s, and not %s/%s; correct the nodes file", p.HTTP,
				status.Region, status.Node, p.region, p.Name)
		case !status.Ready:
			return fmt.Errorf("%s is not ready; see its /readyz", p.calls)
		}
		if err := status.InTouch(len(s.nodes.Regions) - 1); err != nil {
			return fmt.Errorf("%s: %w; rehearse on regions that are in touch", p.calls, err)
		}
		p.look(ctx)
		if err := p.decidesBy(ctx, sc); err != nil {
			return err
		}
		return s.healAll(ctx)(p)
	})
}

// healAll has a node heal its cuts from all other regions, whoever made them.
func (s *Stage) healAll(ctx context.Context) func(*place) error {
	return func(p *place) error {
		for _, other := range s.nodes.Regions {
			if other.Name == p.region {
				continue
			}
			if err := p.cut(ctx, other.Name, "both", 0); err != nil {
				return err
			}
		}
		return nil
	}
}

// fits checks that the file has the regions and nodes that a scenario uses.
func (s *Stage) fits(sc *scenario.Scenario) error {
	for _, r := range sc.Regions {
		places := s.places[r.Name]
		switch {
		case places == nil:
			return s.noRegion(r.Name)
		case len(places) != r.Nodes:
			return fmt.Errorf("region %s has %d nodes in the nodes file and %d in the scenario; give both the same", r.Name, len(places), r.Nodes)
		}
	}
	for _, r := range s.nodes.Regions {
		if !slices.ContainsFunc(sc.Regions,
			func(o scenario.Region) bool { return o.Name == r.Name }) {
			return fmt.Errorf("region %s of the nodes file is not in the scenario; a rehearsal is about all regions of a deployment", r.Name)
		}
	}
	return nil
}

// decidesBy checks that a node decides the scenario's requests by the limits that the scenario
// judges them by.
func (p *place) decidesBy(ctx context.Context, sc *scenario.Scenario) error {
	watched := sc.Watched()
	for _, q := range sc.Questions() {
		b := watched[slices.IndexFunc(watched,
			func(b scenario.Bucket) bool { return b.Name() == q.Bucket })]
		got, err := p.calls.Peek(ctx, question(q))
		switch {
		case err != nil:
			return told(err)
		case got.Limit != b.Limit || got.Algorithm != b.Algorithm || got.Units != b.Units:
			return fmt.Errorf("%s decides %s by limit %q, %s of %d, and the scenario has %s, %s of %d; give the scenario the limits of the deployment",
				p.calls, b.Name(), got.Limit, got.Algorithm, got.Units, b.Limit, b.Algorithm,
				b.Units)
		}
		// In home mode, for very small limits, the fixed split differs.
		split := b.Splits[p.region]
		if small := b.Units < 2*int64(len(sc.Regions)); !small && (got.Entitlement > split ||
			got.Entitlement < split-1) {
			return fmt.Errorf("%s has a fixed split of %d of %s, and by the scenario's weights it is %d; give the scenario the weights of the deployment",
				p.calls, got.Entitlement, b.Name(), split)
		}
	}
	return nil
}
