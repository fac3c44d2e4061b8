package region

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/memory/store"
)

// TestEvictionIsWarnedOf: a node warns once for each change that its Redis may evict keys, and the
// status shows it.
func TestEvictionIsWarnedOf(t *testing.T) {
	server := fixtures.Process(t)
	n := Unstarted(t, 1, documents.Parse(t, 1, HereAndThere, "name: a, limit: 10, window: 1m"))
	var log bytes.Buffer
	n.log = slog.New(slog.NewTextHandler(&log, nil))
	var err error
	if n.config.Store, err = store.Connect(store.Options{URL: server.URL,
		Timeout: 30 * time.Second}); err != nil {
		t.Fatal(err)
	}
	defer n.config.Store.Close()
	client := fixtures.Operator(t, server)
	now := time.Now()
	for i, step := range []struct {
		set   string
		after time.Duration
		seen  string
		warns int
	}{
		{"noeviction", 0, "noeviction", 0},
		{"allkeys-lru", evictionEvery / 2, "noeviction", 0}, // not asked yet
		{"allkeys-lru", evictionEvery, "allkeys-lru", 1},
		{"allkeys-lru", evictionEvery, "allkeys-lru", 1},
		{"noeviction", evictionEvery, "noeviction", 1},
		{"volatile-ttl", evictionEvery, "volatile-ttl", 2},
	} {
		suite.Must(t, client.ConfigSet(t.Context(), "maxmemory-policy", step.set).Err())
		now = now.Add(step.after)
		n.watchEviction(t.Context(), now)
		if got := n.memory.policy(); got != step.seen ||
			strings.Count(log.String(), "set maxmemory-policy noeviction") != step.warns {
			t.Errorf("step %d: %q, want %q and %d warnings\n%s", i, got, step.seen, step.warns,
				&log)
		}
	}
}

// TestMatesAreCounted: a number of nodes that is not the configured one is warned of once, of too
// few only after a while.
func TestMatesAreCounted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var m mates
		const more, fewer = "sees more nodes", "sees fewer nodes"
		for i, step := range []struct {
			after time.Duration
			seen  int
			says  string // in a new line; empty: there is none
		}{
			{0, 1, ""}, {10 * time.Second, 3, ""}, {0, 4, more}, {time.Hour, 4, ""}, {0, 5, more},
			{0, 3, ""}, {0, 4, more}, {0, 2, ""}, {matesPatience - 1, 2, ""}, {1, 2, fewer},
			{time.Hour, 2, ""}, {0, 3, ""}, {0, 2, ""}, {matesPatience, 3, ""}, {0, 2, ""},
			{matesPatience, 2, fewer},
		} {
			time.Sleep(step.after)
			log.Reset()
			m.saw(step.seen, 3, slog.New(slog.NewTextHandler(&log, nil)))
			if (step.says == "") != (log.Len() == 0) || !strings.Contains(log.String(), step.says) {
				t.Errorf("step %d, %d seen: %q, want %q", i, step.seen, &log, step.says)
			}
			if m.count() != step.seen {
				t.Errorf("step %d: %d counted of %d", i, m.count(), step.seen)
			}
		}
	})
}
