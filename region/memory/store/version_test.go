package store

import (
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestFlawed: each series that is listed has a first release without known flaws; a series that is
// not listed is not known to be without. What is no version of a Redis has none that are known.
func TestFlawed(t *testing.T) {
	const valkey = "redis_version:7.2.4\r\nserver_name:valkey\r\n"
	for _, c := range []struct {
		info, runs string
		flawed     bool
	}{
		{"redis_version:7.2.15\r\n", "Redis 7.2.15", true},
		{"redis_version:7.2.16\r\n", "Redis 7.2.16", false},
		{"redis_version:7.4.10\r\n", "Redis 7.4.10", true},
		{"redis_version:7.4.11\r\n", "Redis 7.4.11", false},
		{"redis_version:8.2.8\r\n", "Redis 8.2.8", true},
		{"redis_version:8.2.9\r\n", "Redis 8.2.9", false},
		{"redis_version:8.4.5\r\n", "Redis 8.4.5", true},
		{"redis_version:8.4.6\r\n", "Redis 8.4.6", false},
		{"redis_version:8.6.5\r\n", "Redis 8.6.5", true},
		{"redis_version:8.6.6\r\n", "Redis 8.6.6", false},
		{"redis_version:8.8.1\r\n", "Redis 8.8.1", true},
		{"redis_version:8.8.2\r\n", "Redis 8.8.2", false},
		{"redis_version:8.10.0\r\n", "Redis 8.10.0", true},
		{"redis_version:8.10.1\r\n", "Redis 8.10.1", false},
		{"redis_version:8.10.20\r\n", "Redis 8.10.20", false},
		{"redis_version:7.0.15\r\n", "Redis 7.0.15", true},
		{"redis_version:8.0.9\r\n", "Redis 8.0.9", true},
		{"redis_version:6.2.24\r\n", "Redis 6.2.24", true}, // quotad needs Redis 7.0
		{"redis_version:9.0.0\r\n", "Redis 9.0.0", true},

		{valkey + "valkey_version:8.1.8\r\n", "Valkey 8.1.8", false},
		{valkey + "valkey_version:9.1.2\r\n", "Valkey 9.1.2", false},
		{"redis_version:7.2.4\r\nvalkey_version:7.2.5\r\n", "Valkey 7.2.5", false},
		{valkey, "Valkey of no known version", false},

		{"redis_version:8.2\r\n", "Redis 8.2", false},
		{"redis_version:8.10.1.2\r\n", "Redis 8.10.1.2", false},
		{"redis_version:8.2-rc1\r\n", "Redis 8.2-rc1", false},
		{"redis_version:8.2.-1\r\n", "Redis 8.2.-1", false},
		{"redis_version:7.0.99999\r\n", "Redis 7.0.99999", false},
		{"redis_version:many\r\n", "Redis of no known version", false},
		{"redis_version:7.0.1" + strings.Repeat("0", 64) + "\r\n", "Redis of no known version", false},
		{"redis_version:7.0.1\x1b[31m\r\n", "Redis of no known version", false},
		{"redis_version:\r\n", "", false},
		{"", "", false},
	} {
		v := versionIn("10.0.0.5:6379", c.info)
		if v.String() != c.runs || v.Flawed() != c.flawed {
			t.Errorf("%q: %q, flawed %v; want %q, %v", c.info, v, v.Flawed(), c.runs, c.flawed)
		}
	}
}

// TestVersions: a store tells what each of its servers runs, and nothing of a server that does not
// say.
func TestVersions(t *testing.T) {
	process := fixtures.Process(t)
	for name, kind := range kinds {
		server := process
		if name != "process" {
			server = kind.start(t)
		}
		found, err := connect(t, Options{URL: server.URL}).Versions(t.Context())
		suite.Must(t, err)
		if name != "process" {
			if len(found) != 0 {
				t.Errorf("%s: %v", name, found)
			}
			continue
		}
		info := fixtures.Operator(t, server).Info(t.Context(), "server").Val()
		if want := versionIn(address(server), info); len(found) != 1 || found[0] != want || want.Number == "" {
			t.Errorf("%v, want %+v", found, want)
		}
	}
}
