// Package rehearsal plays a scenario with real processes or on a running deployment, and reports
// the outcome.
//
// A scenario is a file, or one of those in this binary (load.go). [Rehearsal] starts the regions
// (rehearsal.go) or calls the deployment (against.go), reports progress and which expectations were
// met (tell.go), and writes a page about it (report.go).
package rehearsal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/quotad/quotad/chaos/real/process"
	"github.com/quotad/quotad/chaos/real/scenario"
	"github.com/quotad/quotad/cmd/quotad/exit"
)

// Rehearsal is a scenario with the options of its run.
type Rehearsal struct {
	*scenario.Scenario
	Quotad   string // path of the binary under test; empty: this one
	Against  string // nodes file of a running deployment; empty: none
	ReportTo string // path of the page to write; empty: none
	Output   string // table or json
	Seed     uint64
	Command  string // the command line that plays it again
}

// PlayAndJudge plays the scenario and reports the outcome. The error carries the exit code if an
// expectation was not met.
func (r *Rehearsal) PlayAndJudge(ctx context.Context, out io.Writer) error {
	if r.Quotad == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this binary: %w; name one with --quotad", err)
		}
		r.Quotad = self
	}
	if err := r.checkPaths(); err != nil {
		return exit.Usage(err)
	}
	ground, err := process.NewGround()
	if err != nil {
		return err
	}
	// A closed terminal must end what was started, too, because mounted disks would stay.
	playing, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()
	tell := teller{out: out, quiet: r.Output == "json"}
	record, err := r.stage(playing, ground, &tell)
	if err = errors.Join(err, ground.Close()); err != nil {
		return err
	}
	results := r.Judge(record)
	told := r.tell(out, record, results)
	if r.ReportTo == "" {
		return told
	}
	return cmp.Or(r.writeReport(ctx, record, results), told)
}

// checkPaths checks the paths before anything is played.
func (r *Rehearsal) checkPaths() error {
	switch info, err := os.Stat(r.Quotad); {
	case err != nil:
		return fmt.Errorf("--quotad: %w; name a binary of quotad", err)
	case info.IsDir():
		return fmt.Errorf("--quotad %s: it is a folder; name a binary of quotad", r.Quotad)
	}
	if r.ReportTo == "" {
		return nil
	}
	if info, err := os.Stat(r.ReportTo); err == nil && info.IsDir() {
		return fmt.Errorf("--report %s: it is a folder; name a file in it", r.ReportTo)
	}
	dir := filepath.Dir(r.ReportTo)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("--report %s: there is no folder %s; make it first", r.ReportTo, dir)
	}
	return nil
}

// stage starts the regions and plays the scenario on them, or plays it on a running deployment.
func (r *Rehearsal) stage(ctx context.Context, scope process.Scope, tell *teller) (*scenario.Record,
	error) {
	quotad, err := filepath.Abs(r.Quotad)
	if err != nil {
		return nil, err
	}
	if r.Against != "" {
		return r.onDeployment(ctx, r.Against, quotad, tell)
	}
	if err := r.Impossible((*scenario.Fleet)(nil)); err != nil {
		return nil, exit.Usage(err)
	}
	tell.begin(r)
	bounds, err := r.PrintedBounds(ctx, quotad)
	if err != nil {
		return nil, err
	}
	fleet, err := scenario.StartFleet(ctx, scope, r.Scenario, quotad, r.Seed)
	// Half-started nodes report many errors, none of which is the cause.
	if ctx.Err() != nil {
		return nil, fmt.Errorf("scenario %s was ended before it began: %w", r.Name,
			context.Cause(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("start the regions of %s: %w", r.Name, err)
	}
	tell.started(r)
	return r.Play(ctx, fleet, scenario.Options{Seed: r.Seed, Bounds: bounds, Began: tell.step,
		Done: tell.done})
}
