package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/quotad/quotad/chaos/real/scenario"
	"github.com/quotad/quotad/chaos/real/staging"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/show"
)

// onDeployment plays the scenario on a running deployment. file names its nodes.
func (r *Rehearsal) onDeployment(ctx context.Context, file, quotad string,
	tell *teller) (_ *scenario.Record, err error) {
	nodes, err := staging.ReadNodes(file)
	if err != nil {
		return nil, exit.Usage(err)
	}
	bounds, err := r.PrintedBounds(ctx, quotad)
	if err != nil {
		return nil, err
	}
	stage, err := staging.Open(nodes, r.Duration)
	if err != nil {
		return nil, exit.Usage(err)
	}
	defer func() { err = errors.Join(err, stage.Close()) }()
	if err := r.Impossible(stage); err != nil {
		return nil, exit.Usage(err)
	}
	tell.line("%s: %s", r.Name, r.About)
	if err := stage.Check(ctx, r.Scenario); err != nil {
		return nil, fmt.Errorf("%s cannot be rehearsed on the deployment of %s:\n%w", r.Name, file,
			err)
	}
	tell.line("the nodes of %s are ready and make cuts; %s of load begin",
		strings.Join(stage.Regions(), ", "), show.Span(r.Duration))
	return r.Play(ctx, stage, scenario.Options{Seed: r.Seed, Bounds: bounds, Began: tell.step,
		Done: tell.done})
}
