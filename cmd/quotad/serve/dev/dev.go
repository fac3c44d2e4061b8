// Package dev keeps regions running in this process, for whoever tries quotad out.
//
// [Run] starts a world (package chaos/play/world: a node with an embedded Redis for each region of a
// limits document, and a network with latency between them) and puts a server before each node
// (ports.go). The first region has the usual ports. cut.go cuts links, play.go makes load and kills
// stores, and box.go says what it is and what to type next.
package dev

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/play/world"
	"github.com/quotad/quotad/policy"
)

// Options say what runs.
type Options struct {
	Document  *policy.Document
	RoundTrip time.Duration // between any two regions
	// Port is the first region's HTTP port; gRPC has the next one, and the admin listener the third
	// after it. Each further region has those that are a hundred higher. 0: any free ports.
	Port int
	Log  *slog.Logger
}

// MaxRegions bounds the regions that run in one process.
const MaxRegions = 9

// Sample returns the limits document of one region, or of three.
func Sample(regions int) (*policy.Document, error) {
	if regions == 1 {
		return policy.Parse("sample", sampleOne)
	}
	return policy.Parse("sample", sampleThree)
}

var (
	//go:embed limits.yaml
	sampleThree []byte
	//go:embed limits_one.yaml
	sampleOne []byte
)

// Run serves until ctx ends or something fails. It writes to out what runs and what to do with it,
// once everything answers.
func Run(ctx context.Context, o Options, out io.Writer) error {
	if n := len(o.Document.Regions); n > MaxRegions {
		return fmt.Errorf("the limits document has %d regions, and quotad dev runs at most %d", n,
			MaxRegions)
	}
	all, err := open(o)
	if err != nil {
		return err
	}
	defer all.close()
	w, err := world.Start(ctx, world.Config{Document: o.Document, RoundTrip: o.RoundTrip, Log: o.Log,
		Redis: servers.StartEmbedded})
	if err != nil {
		return err
	}
	play, err := newPlay(w, o.Document)
	if err != nil {
		return errors.Join(err, w.Close())
	}
	for _, p := range all {
		p.serve(w, o, all[0].consoleAddress(), play)
	}
	running, fail := context.WithCancelCause(ctx)
	var tasks sync.WaitGroup
	for _, p := range all {
		p.start(&tasks, fail)
	}
	box(out, o, all)
	tasks.Go(func() { play.run(running) })
	<-running.Done()
	var failure error
	if ctx.Err() == nil {
		failure = context.Cause(running)
	}
	for _, p := range all {
		failure = errors.Join(failure, p.server.Close())
	}
	tasks.Wait()
	fail(nil)
	return errors.Join(failure, w.Close())
}
