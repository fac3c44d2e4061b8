// Package bench measures what a decision costs: at a node of quotad, at a server that decides
// nothing (the floor), and at one that makes one small script call for each decision (lean).
//
// [Bench] has the options, starts the subjects (subjects.go) and measures them by turns
// (rounds.go). [Floor] is the server of the floor and of lean, a process of its own (floor.go,
// webfloor.go, lean.go). load.go makes the calls, of the kinds in ask.go and web.go, keys.go
// chooses their keys, processor.go reads what the system says about processes, figures.go computes
// the figures, and tell.go writes them.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/process"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/show"
)

// The bounds of the options.
const (
	maxDuration = time.Minute
	maxRounds   = 50
	maxCallers  = 4096
	maxAmong    = 1_000_000
	maxPIDs     = 64
	// maxBatch is as many requests as the API takes in one call.
	maxBatch = 1000
	// maxConnections bounds the connections to each server.
	maxConnections = 8
)

// Bench holds the options of quotad bench.
type Bench struct {
	Algorithm string
	Callers   int
	Keys      string // one of Spreads
	Among     int    // number of keys
	Duration  time.Duration
	Rounds    int
	Batch     int    // decisions in each call
	Columns   bool   // by CheckColumns
	HTTP      bool   // over HTTP in place of gRPC
	GRPC      string // host:port of a node that runs already; empty: start one
	PIDs      []int  // processes of that node
	Output    string // table or json

	// ChoosesAlgorithm says that Algorithm was asked for and is not the default.
	ChoosesAlgorithm bool
}

// check returns everything that is wrong with the options.
func (b *Bench) check() error {
	var all []error
	wrong := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	within := func(flag string, n, most int) {
		if n < 1 || n > most {
			wrong("--%s %d: give 1 to %d", flag, n, most)
		}
	}
	if !slices.Contains(algorithms.Kinds, algorithms.Kind(b.Algorithm)) {
		wrong("--algorithm %q: choose %s", b.Algorithm, show.Listed(algorithms.Kinds))
	}
	within("callers", b.Callers, maxCallers)
	if !slices.Contains(Spreads, b.Keys) {
		wrong("--keys %q: choose %s", b.Keys, show.Listed(Spreads))
	}
	within("among", b.Among, maxAmong)
	if b.Duration < minDuration || b.Duration > maxDuration {
		wrong("--duration %s: give %s to %s", show.Span(b.Duration), show.Span(minDuration),
			show.Span(maxDuration))
	}
	within("rounds", b.Rounds, maxRounds)
	within("batch", b.Batch, maxBatch)
	if b.HTTP && b.Columns {
		wrong("--columns is a call of gRPC: leave out --http, or --columns")
	}
	if b.HTTP && b.GRPC != "" {
		wrong("--http: a node that runs already is called over gRPC: leave out --http, or --grpc")
	}
	if b.GRPC == "" && len(b.PIDs) > 0 {
		wrong("--pid names processes of a node that runs already: add --grpc, or leave it out")
	}
	if b.GRPC != "" {
		if !onLoopback(b.GRPC) {
			wrong("--grpc %q: give the address of a node on this machine's loopback, "+
				"such as 127.0.0.1:8081", b.GRPC)
		}
		if b.ChoosesAlgorithm {
			wrong("--algorithm: the limits document of the node at --grpc chooses it: " +
				"leave one of them out")
		}
	}
	if len(b.PIDs) > maxPIDs {
		wrong("--pid names %d processes: give at most %d", len(b.PIDs), maxPIDs)
	}
	for _, pid := range b.PIDs {
		if !procfs.runs(pid) {
			wrong("--pid %d: there is no such process", pid)
		}
	}
	return errors.Join(all...)
}

// minDuration bounds the time of a round below. Processor time is counted in steps of some
// milliseconds.
const minDuration = 50 * time.Millisecond

// onLoopback says whether an address is host:port on loopback.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// connections returns the number of connections to each server. Over HTTP each caller has one.
func (b *Bench) connections() int {
	if b.HTTP {
		return b.Callers
	}
	return min(b.Callers, maxConnections)
}

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
