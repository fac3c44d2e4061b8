package region

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/memory/store"
)

// TestEvictionIsWarnedOf: a node warns once for each change that its Redis may evict keys, and the
// status shows it.
func TestEvictionIsWarnedOf(t *testing.T) {
	server := fixtures.Process(t)
	n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere, "name: a, limit: 10, window: 1m"))
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
