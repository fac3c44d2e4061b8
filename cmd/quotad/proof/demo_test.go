package proof

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/play/world"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/proof/simulation"
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
		{"without lending", 1, exchange.Options{WithoutLending: true}, exit.NotShown},
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
				suite.Must(t, err)
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
				suite.Must(t, err)
				err = tellDemo(&out, newScreen(&out, story), report, "json")
				if code, _ := exit.Of(err); code != c.want {
					t.Errorf("exit code %d, want %d: %v, %v", code, c.want, report.Failures, report.NotShown)
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

// TestABusyMachineBreaksNoPromise: what a machine is too busy to show is told as that, with what it
// lacked, and only what was admitted above a limit as broken.
func TestABusyMachineBreaksNoPromise(t *testing.T) {
	for _, c := range []struct {
		report world.Report
		code   int
		said   []string
		not    string
	}{
		{world.Report{NotShown: []string{"shares did not come back"},
			Lacked: []string{"processor time: this process stood still for up to 340ms"}}, exit.NotShown,
			[]string{"not shown: shares did not come back", "the machine lacked processor time", "NOT SHOWN"},
			"broken"},
		{world.Report{Failures: []string{"1,012 of 1,000"}, NotShown: []string{"more"}}, exit.Broken,
			[]string{"broken: 1,012 of 1,000", "not shown: more", "NOT OK: the promise is broken"},
			"lacked"},
	} {
		var out bytes.Buffer
		err := tellDemo(&out, newScreen(&out, world.Story{}), c.report, "table")
		if code, _ := exit.Of(err); code != c.code {
			t.Errorf("exit code %d, want %d", code, c.code)
		}
		for _, text := range c.said {
			if !strings.Contains(out.String(), text) {
				t.Errorf("not said: %q\n%s", text, &out)
			}
		}
		if strings.Contains(out.String(), c.not) {
			t.Errorf("said: %q\n%s", c.not, &out)
		}
	}
}
