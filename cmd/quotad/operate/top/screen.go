package top

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/quotad/quotad/cmd/quotad/draw"
	"github.com/quotad/quotad/cmd/quotad/show"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// Fetch asks a node for an overview.
type Fetch func() (*quotadv1.OverviewResponse, error)

// Watch draws reports on a terminal, a new one at each interval, until ctx ends. A failure to ask is
// shown and asked again.
func Watch(ctx context.Context, out *draw.Screen, every time.Duration, fetch Fetch) error {
	defer out.Leave()
	tick := time.NewTicker(every)
	defer tick.Stop()
	var s screen
	for {
		s.take(fetch())
		if ctx.Err() != nil {
			return nil
		}
		out.Draw(s.lines())
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// screen is what the terminal shows.
type screen struct {
	before *quotadv1.OverviewResponse // nil: there is no overview yet
	report *Report                    // nil: there were no two overviews yet
	err    error                      // of the last attempt
}

// take takes in an overview, or why there is none. One that is as old as the last is passed over.
func (s *screen) take(o *quotadv1.OverviewResponse, err error) {
	s.err = err
	if err != nil || s.before != nil && !o.At.AsTime().After(s.before.At.AsTime()) {
		return
	}
	if s.before != nil {
		r := Of(s.before, o)
		s.report = &r
	}
	s.before = o
}

// lines returns the drawing.
func (s *screen) lines() []string {
	var b strings.Builder
	fmt.Fprint(&b, "quotad top (Ctrl+C ends it)  ")
	switch {
	case s.err != nil:
		fmt.Fprintf(&b, "%s\n\n", show.Detail(s.err.Error()))
	case s.report == nil:
		fmt.Fprint(&b, "waiting for the second answer\n")
	}
	if s.report != nil {
		_ = s.report.Print(&b) // a Builder takes everything
	}
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}
