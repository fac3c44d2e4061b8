package scenario

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/real/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestScenarioWithProcesses plays a short scenario with real nodes, each with a Redis, and with
// network faults. Its expectations must be met.
func TestScenarioWithProcesses(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("testdata/short.yaml")
	suite.Must(t, err)
	s, err := Parse("short.yaml", src)
	suite.Must(t, err)
	s.mustBeMet(t)
}

// mustBeMet plays a scenario with processes. Its expectations must be met.
func (s *Scenario) mustBeMet(t *testing.T) {
	t.Helper()
	quotad, err := process.Build(t.Context(), t.TempDir())
	suite.Must(t, err)
	bounds, err := s.PrintedBounds(t.Context(), quotad)
	suite.Must(t, err)
	ground, err := process.NewGround()
	suite.Must(t, err)
	record := perform(t, ground, s, quotad, bounds)
	results := s.Judge(record)
	for _, one := range results {
		t.Logf("%v: %s: want %s, got %s", one.OK, one.Text, one.Want, one.Got)
	}
	if !OK(results) {
		t.Error("not everything was met")
	}
}

// perform plays a scenario on a fleet of its own, which ends with it.
func perform(t *testing.T, ground *process.Ground, s *Scenario, quotad string,
	bounds map[string]Bounds) *Record {
	t.Helper()
	defer func() {
		suite.Must(t, ground.Close())
	}()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	fleet, err := StartFleet(ctx, ground, s, quotad, 1)
	suite.Must(t, err)
	record, err := s.Play(ctx, fleet, Options{Seed: 1, Bounds: bounds})
	suite.Must(t, err)
	return record
}
