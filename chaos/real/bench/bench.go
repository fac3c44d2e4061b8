// Package bench measures what a decision costs: at a node of quotad, at a server that decides
// nothing (the floor), and at one that makes one small script call for each decision (lean).
//
// [Bench] has the options (options.go; flags.go has those of quotad bench), starts the subjects
// (subjects.go) and measures them by turns (rounds.go). An Envoy rate limit service that runs
// already can be a further subject (compare.go). [Floor] is the server of the floor and of lean, a
// process of its own (floor.go, webfloor.go, lean.go). load.go makes the calls, of the kinds in
// ask.go, web.go and compare.go, keys.go chooses their keys, processor.go reads what the system says
// about processes, figures.go computes the figures, and tell.go writes them.
//
// Two commands use it: quotad bench, with what sizes a node, and chaos/bench, with all of it.
package bench

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/quotad/quotad/chaos/real/process"
)

// Run measures, by options that Check does not refuse. It calls progress with what is being played,
// and at the end with an empty text.
func (b *Bench) Run(ctx context.Context, progress func(string)) (*Report, error) {
	ground, err := process.NewGround()
	if err != nil {
		return nil, err
	}
	// A closed terminal must end what was started, too.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()
	r, err := b.measure(ctx, ground, progress)
	if ctx.Err() != nil { // children that were interrupted as well report errors
		err = fmt.Errorf("the bench was ended before its last round: %w", context.Cause(ctx))
	}
	return r, errors.Join(err, ground.Close())
}

// measure starts the subjects, and measures them by turns.
func (b *Bench) measure(ctx context.Context, scope process.Scope,
	progress func(string)) (*Report, error) {
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
