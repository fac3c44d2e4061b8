package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/bubble"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/world"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/simulation"
	"github.com/quotad/quotad/policy"
)

// TestDemoExitCodes plays the demo as it is, with a build that admits twice its share, and without
// lending.
func TestDemoExitCodes(t *testing.T) {
	suite.OneGoroutine(t)
	for _, c := range []struct {
		name    string
		inflate int64
		options exchange.Options
		want    int
	}{
		{"as it is", 1, exchange.Options{}, exit.OK},
		{"twice its share", 2, exchange.Options{}, exit.Broken},
		{"without lending", 1, exchange.Options{WithoutLending: true}, exit.Broken},
	} {
		t.Run(c.name, func(t *testing.T) {
			story := world.Story{Duration: world.Shortest, Seed: 1, Scale: 0.1,
				Algorithm: string(policy.FixedWindow),
				RoundTrip: simulation.RoundTrip, Log: slog.New(slog.DiscardHandler),
				Inflate: c.inflate, Exchange: c.options}
			// The servers are outside the bubble, because waiting on their sockets would stop its
			// time.
			var all []*servers.Server
			for range 3 {
				server, err := servers.StartDriven(time.Now)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, server)
			}
			story.Redis = func(context.Context) (*servers.Server, error) {
				next := all[0]
				all = all[1:]
				return next, nil
			}
			var out bytes.Buffer
			bubble.Test(t, func(t *testing.T) {
				report, err := world.Play(t.Context(), story)
				if err != nil {
					t.Fatal(err)
				}
				err = tellDemo(&out, newScreen(&out, story), report, "json")
				if code, _ := exit.Of(err); code != c.want {
					t.Errorf("exit code %d, want %d: %v", code, c.want, report.Failures)
				}
			})
			var printed world.Report
			if err := json.Unmarshal(out.Bytes(), &printed); err != nil ||
				printed.OK != (c.want == exit.OK) {
				t.Errorf("printed %s: %v", out.Bytes(), err)
			}
		})
	}
}
