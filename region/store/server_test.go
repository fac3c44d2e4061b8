package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
)

// TestServerCloses: Close may be repeated, and leaves neither a listener nor a file.
func TestServerCloses(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		dir := t.TempDir()
		t.Setenv("TMPDIR", dir)
		server := kind.start(t)
		client := raw(t, server)
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := server.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := client.Ping(t.Context()).Err(); err == nil {
			t.Error("a closed server answers")
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
}

// TestStartProcessRefuses: what cannot be started says why.
func TestStartProcessRefuses(t *testing.T) {
	t.Run("not installed", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		if _, err := StartProcess(t.Context()); !errors.Is(err, ErrNoRedisServer) {
			t.Errorf("%v, want %v", err, ErrNoRedisServer)
		}
	})
	t.Run("ends at once", func(t *testing.T) {
		bin := t.TempDir()
		script := "#!/bin/sh\necho 'FATAL CONFIG FILE ERROR'\nexit 1\n"
		if err := os.WriteFile(filepath.Join(bin, "redis-server"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		_, err := StartProcess(t.Context())
		if err == nil || !strings.Contains(err.Error(), "FATAL CONFIG FILE ERROR") {
			t.Errorf("%v does not say what the server said", err)
		}
	})
	t.Run("given up", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if s, err := StartProcess(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, %v, want %v", s, err, context.Canceled)
		}
	})
}

// TestStartDriven: the scripts' time is what the test says, and a step back reopens no cell.
func TestStartDriven(t *testing.T) {
	now := time.UnixMicro(1_900_000_000_000_000)
	server := started(t)(StartDriven(func() time.Time { return now }))
	s := node(t, server, first)
	of := algorithms.Terms{Kind: algorithms.FixedWindow, Window: 60_000_000, Cell: 60_000_000, Tick: 1, Entitlement: 3}
	steps := []struct {
		by    time.Duration
		admit int64
		now   int64 // after the first moment, in microseconds
	}{
		{0, 3, 0},
		{time.Second, 0, 1_000_000},
		{time.Minute, 3, 61_000_000},
		{-time.Minute, 0, 61_000_000}, // the high-water mark stands
		{2 * time.Minute, 3, 121_000_000},
	}
	begin := now.UnixMicro()
	for i, step := range steps {
		now = now.Add(step.by)
		d := decide(t, s, algorithms.Decide{Fence: under(epoch), Commit: true, Costs: []int64{1, 1, 1, 1}, Buckets: []algorithms.LimitTarget{{Target: algorithms.Target{Key: BucketKey(Whole, "k"), Terms: of}}}})
		if d.Status != algorithms.StatusOK || d.Now != begin+step.now || admitted(d) != step.admit {
			t.Errorf("step %d: %+v at %d, want %d admitted at %d", i, d, d.Now-begin, step.admit, step.now)
		}
	}
}
