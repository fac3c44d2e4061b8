package serving

import (
	"strings"
	"testing"

	"github.com/quotad/quotad/region/memory/store"
)

// TestWhatARedisRunsIsChecked: serve --check tells what the servers run, and warns of each server
// whose Redis is not known to be without flaws. It does not warn of Valkey.
func TestWhatARedisRunsIsChecked(t *testing.T) {
	v := func(server, program, number string) store.Version {
		return store.Version{Server: server, Program: program, Number: number}
	}
	for runs, c := range map[string]struct {
		versions []store.Version
		warns    []string // the beginning of each
	}{
		"": {},
		"Redis 8.10.1": {versions: []store.Version{v("a:1", "Redis", "8.10.1"),
			v("b:1", "Redis", "8.10.1")}},
		"Valkey 9.1.2":              {versions: []store.Version{v("a:1", "Valkey", "9.1.2")}},
		"Redis of no known version": {versions: []store.Version{v("a:1", "Redis", "")}},
		"Redis 7.0.15, Redis 7.2.16, Redis 7.4.10": {
			versions: []store.Version{v("a:1", "Redis", "7.4.10"), v("b:1", "Redis", "7.2.16"),
				v("c:1", "Redis", "7.0.15")},
			warns: []string{"the Redis a:1 runs Redis 7.4.10, ", "the Redis c:1 runs Redis 7.0.15, "}},
	} {
		r := redisAnswer{shards: 1, eviction: store.NoEviction, versions: c.versions}
		if got := r.runs(); got != runs {
			t.Errorf("%v: %q, want %q", c.versions, got, runs)
		}
		got := r.warnings()
		if len(got) != len(c.warns) {
			t.Errorf("%s: %q, want %d warnings", runs, got, len(c.warns))
			continue
		}
		for i, words := range c.warns {
			if !strings.HasPrefix(got[i], words) || !strings.Contains(got[i], "to Redis "+store.Mended()) {
				t.Errorf("%s: %q does not begin with %q, or says no remedy", runs, got[i], words)
			}
		}
	}
}
