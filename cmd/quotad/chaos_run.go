package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/chaos/process"
	"github.com/quotad/quotad/chaos/scenario"
	"github.com/quotad/quotad/cmd/quotad/exit"
)

// rehearsal is a scenario to be played, and how.
type rehearsal struct {
	*scenario.Scenario
	quotad, report, output string
	against                string // nodes file of a deployment that runs already; empty: none
	seed                   uint64
	command                string // that plays it again
}

func chaosRunCommand() *cobra.Command {
	var r rehearsal
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Play a scenario with real processes, and judge what came of it",
		Long: `run starts the regions of a scenario on this machine, each with a redis-server and its nodes, offers load to them, does
what the scenario says at its times, and judges every answer. FILE is a scenario of your own, or the name of one of those
that quotad chaos list shows. All listens on loopback, all between nodes goes through a proxy of this process, and all
ends with it, also at an interrupt (kill -9 leaves a folder quotad-chaos-* where TMPDIR says, and in it a failing disk
mounted).

It needs a redis-server, Linux or loopback aliases, and the time that list shows. A step that is not possible here, such
as a failing disk without root, is refused before anything starts.

With --against it is played on a deployment that runs already, such as your staging environment, whose nodes are named in a
file: deploy/multi-region/nodes.yaml is an example. Load goes to their HTTP API, and cuts are asked for over their peer
ports: each node must have been started with chaos: true, and refuses else. Only cut, heal and flap are possible; what
needs the processes is refused before anything is asked of them, as is a scenario whose regions, limits or weights are not
the deployment's. The load is real: it spends of the keys that the scenario names. Cuts are healed at the end, and end by
themselves if this process is killed.

Exit codes: 0 all that the scenario expects was met, 1 it could not be played, 2 usage or an invalid scenario, 3 something
was not met.`,
		Example: `  quotad chaos run full-split --report split.html
  quotad chaos run staging-split.yaml --against nodes.yaml`,
		Args:              one("scenario", "full-split; quotad chaos list shows some"),
		ValidArgsFunction: completeScenario,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if r.Scenario, err = loadScenario(args[0]); err != nil {
				return err
			}
			r.command = fmt.Sprintf("quotad chaos run %s --seed %d", args[0], r.seed)
			if r.quotad != "" {
				r.command += " --quotad " + r.quotad
			}
			if r.against != "" {
				r.command += " --against " + r.against
			}
			return r.play(cmd)
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.quotad, "quotad", "", "`path` of the binary under test (default: this one)")
	f.Uint64Var(&r.seed, "seed", 1, "seed of the load's jitter and of what the network loses")
	f.StringVar(&r.against, "against", "", "play it on the deployment whose nodes this `file` names, and start nothing")
	_ = cmd.MarkFlagFilename("against", yamlFiles...) // fails for a flag that is not there
	f.StringVar(&r.report, "report", "", "write a page about the run to this `file`, HTML")
	outputFlag(cmd, &r.output)
	return cmd
}

// play plays the scenario and tells what came of it.
func (r *rehearsal) play(cmd *cobra.Command) error {
	out := cmd.OutOrStdout()
	if r.quotad == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this binary: %w; name one with --quotad", err)
		}
		r.quotad = self
	}
	if err := r.checkPaths(); err != nil {
		return exit.Usage(err)
	}
	ground, err := process.NewGround()
	if err != nil {
		return err
	}
	// What was started must end with a closed terminal, too: mounted disks would stay.
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGHUP)
	defer stop()
	tell := teller{out: out, quiet: r.output == "json"}
	record, err := r.stage(ctx, ground, &tell)
	if err = errors.Join(err, ground.Close()); err != nil {
		return err
	}
	results := r.Judge(record)
	told := r.tell(out, record, results)
	if r.report == "" {
		return told
	}
	return cmp.Or(r.writeReport(cmd.Context(), record, results), told)
}

// checkPaths checks what can be known to be wrong of paths before anything is played.
func (r *rehearsal) checkPaths() error {
	switch info, err := os.Stat(r.quotad); {
	case err != nil:
		return fmt.Errorf("--quotad: %w; name a binary of quotad", err)
	case info.IsDir():
		return fmt.Errorf("--quotad %s: it is a folder; name a binary of quotad", r.quotad)
	}
	if r.report == "" {
		return nil
	}
	if info, err := os.Stat(r.report); err == nil && info.IsDir() {
		return fmt.Errorf("--report %s: it is a folder; name a file in it", r.report)
	}
	dir := filepath.Dir(r.report)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("--report %s: there is no folder %s; make it first", r.report, dir)
	}
	return nil
}

// stage starts the regions and plays the scenario on them, or plays it on a deployment that runs already.
func (r *rehearsal) stage(ctx context.Context, scope process.Scope, tell *teller) (*scenario.Record, error) {
	quotad, err := filepath.Abs(r.quotad)
	if err != nil {
		return nil, err
	}
	if r.against != "" {
		return r.onDeployment(ctx, r.against, quotad, tell)
	}
	if err := r.Impossible((*scenario.Fleet)(nil)); err != nil {
		return nil, exit.Usage(err)
	}
	tell.begin(r)
	bounds, err := r.PrintedBounds(ctx, quotad)
	if err != nil {
		return nil, err
	}
	fleet, err := scenario.StartFleet(ctx, scope, r.Scenario, quotad, r.seed)
	if ctx.Err() != nil { // nodes that were half started have much to say, and none of it is the cause
		return nil, fmt.Errorf("scenario %s was ended before it began: %w", r.Name, context.Cause(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("start the regions of %s: %w", r.Name, err)
	}
	tell.started(r)
	return r.Play(ctx, fleet, scenario.Options{Seed: r.seed, Bounds: bounds, Began: tell.step, Done: tell.done})
}
