// Package bench measures what a decision costs: at a node of quotad, at a server that decides
// nothing (the floor), and at one that makes one small script call for each decision (lean).
//
// [Bench] has the options (options.go), starts the subjects (subjects.go) and measures them by
// turns (rounds.go). An Envoy rate limit service that runs already can be a further subject
// (compare.go). [Floor] is the server of the floor and of lean, a process of its own (floor.go,
// webfloor.go, lean.go). load.go makes the calls, of the kinds in ask.go, web.go and compare.go,
// keys.go chooses their keys, processor.go reads what the system says about processes, figures.go
// computes the figures, and tell.go writes them.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"

	"github.com/quotad/quotad/chaos/real/process"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/show"
)

// Run measures and writes the result. The error carries the exit code if too many calls failed.
func (b *Bench) Run(ctx context.Context, out, errs io.Writer) error {
	if err := b.check(); err != nil {
		return exit.Usage(err)
	}
	ground, err := process.NewGround()
	if err != nil {
		return err
	}
	// A closed terminal must end what was started, too.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()
	r, err := b.measure(ctx, ground, b.progress(errs))
	if ctx.Err() != nil { // children that were interrupted as well report errors
		err = fmt.Errorf("the bench was ended before its last round: %w", context.Cause(ctx))
	}
	if err = errors.Join(err, ground.Close()); err != nil {
		return err
	}
	if err := show.Result(out, b.Output, r, r.tell); err != nil {
		return err
	}
	if !r.OK {
		return exit.Silently(exit.Failed)
	}
	return nil
}

// progress returns a function that shows on a terminal which round is being played. An empty text
// removes it.
func (b *Bench) progress(errs io.Writer) func(string) {
	if b.Output != "table" || !show.IsTerminal(errs) {
		return func(string) {}
	}
	return func(text string) {
		fmt.Fprintf(errs, "\r\033[K%s", strings.TrimSpace(text))
	}
}

// measure starts the subjects, and measures them by turns.
func (b *Bench) measure(ctx context.Context, scope process.Scope,
	progress func(string)) (*report, error) {
	s, err := b.start(ctx, scope)
	if err != nil {
		return nil, err
	}
	defer progress("")
	for round := range b.Rounds {
		for _, one := range s.all {
			progress(fmt.Sprintf("round %d of %d: %s", round+1, b.Rounds, one.name))
			measured, err := b.play(ctx, s, one, round)
			if err != nil {
				return nil, err
			}
			one.rounds = append(one.rounds, measured)
		}
	}
	return b.report(s), nil
}
