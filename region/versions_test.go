package region

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/region/memory/store"
)

// versioned are servers that say what they run, and answer nothing else.
type versioned struct {
	store.Servers
	runs store.Version
}

// Memory implements store.Servers.
func (v *versioned) Memory(context.Context, store.Shard) (store.Memory, error) {
	return store.Memory{Server: v.runs.Server, Reported: true, Policy: store.NoEviction,
		Version: v.runs}, nil
}

// TestVersionsAreWarnedOf: a node warns once in its life of each version of Redis that is not known
// to be without flaws, however often servers come and go. It reports the others, and Valkey's,
// without a warning.
func TestVersionsAreWarnedOf(t *testing.T) {
	n := Unstarted(t, 1, documents.Parse(t, 1, HereAndThere, "name: a, limit: 10, window: 1m"))
	var log bytes.Buffer
	n.log = slog.New(slog.NewTextHandler(&log, nil))
	v := &versioned{}
	n.config.Store = store.New(store.Parts{Servers: v, Shards: store.Shards{store.Whole}, Timeout: time.Minute})
	now := time.Now()
	for i, step := range []struct {
		program, number string
		warns, tells    int // so far
	}{
		{"Redis", "7.0.15", 1, 0}, {"Redis", "7.0.15", 1, 0}, {"Redis", "8.10.1", 1, 1},
		{"Redis", "7.0.15", 1, 1}, {"Redis", "8.2.8", 2, 1}, {"Valkey", "9.1.2", 2, 2},
		{"Valkey", "9.1.2", 2, 2}, {"Redis", "", 2, 3}, {"", "", 2, 3},
	} {
		v.runs = store.Version{Server: "10.0.0.5:6379", Program: step.program, Number: step.number}
		now = now.Add(evictionEvery)
		n.watchEviction(t.Context(), now)
		if warns, tells := strings.Count(log.String(), "level=WARN"), strings.Count(log.String(),
			"level=INFO"); warns != step.warns || tells != step.tells {
			t.Errorf("step %d: %d warnings and %d lines, want %d and %d\n%s", i, warns, tells,
				step.warns, step.tells, &log)
		}
	}
	for _, words := range []string{"without grave flaws", `version="Redis 7.0.15"`, "8.10.1",
		`version="Valkey 9.1.2"`, "server=10.0.0.5:6379"} {
		if !strings.Contains(log.String(), words) {
			t.Errorf("the log does not say %q:\n%s", words, &log)
		}
	}
	for i := range 2 * maxVersions {
		v.runs.Program, v.runs.Number = "Redis", fmt.Sprint("7.0.", i)
		now = now.Add(evictionEvery)
		n.watchEviction(t.Context(), now)
	}
	if len(n.memory.versions) > maxVersions {
		t.Errorf("%d versions are remembered", len(n.memory.versions))
	}
}
