package store

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Version is which program a server says it runs.
type Version struct {
	Server  string // host:port
	Program string // Redis or Valkey; empty: the server does not say, like the embedded Redis
	Number  string // such as 8.2.9; empty: what the server says is no version
}

const (
	programRedis  = "Redis"
	programValkey = "Valkey"
)

// String returns what the server says it runs; empty if it does not say.
func (v Version) String() string {
	if v.Program != "" && v.Number == "" {
		return v.Program + " of no known version"
	}
	return strings.TrimSpace(v.Program + " " + v.Number)
}

// told bounds what is taken of a server for its version.
var told = regexp.MustCompile(`^[0-9][0-9A-Za-z.+~_-]{0,31}$`)

// versionIn reads a server's INFO server. Valkey also shows the version of the Redis that it is
// compatible with, which says nothing of its flaws.
func versionIn(server, info string) Version {
	v := Version{Server: server, Program: programRedis, Number: infoField(info, "redis_version")}
	switch number := infoField(info, "valkey_version"); {
	case number != "" || infoField(info, "server_name") == "valkey":
		v.Program, v.Number = programValkey, number
	case v.Number == "":
		v.Program = ""
	}
	if !told.MatchString(v.Number) {
		v.Number = ""
	}
	return v
}

// release is the number of a Redis.
type release struct{ major, minor, patch uint64 }

func (r release) String() string { return fmt.Sprintf("%d.%d.%d", r.major, r.minor, r.patch) }

// mended has for each series of Redis that quotad runs on the first release without the flaws that
// are known: CVE-2026-81934, and CVE-2025-49844 and CVE-2026-23631 of those who may run scripts. It
// is in order. Redis 6.2.24 has them mended too, but quotad needs Redis 7.0 or later.
var mended = []release{{7, 2, 16}, {7, 4, 11}, {8, 2, 9}, {8, 4, 6}, {8, 6, 6}, {8, 8, 2}, {8, 10, 1}}

// Mended returns the first release of each series of Redis without known flaws, in words.
func Mended() string {
	var all []string
	for _, r := range mended {
		all = append(all, r.String())
	}
	return strings.Join(all, ", ")
}

// Flawed reports whether a Redis has known flaws, or is of a series in which no release is known to
// be without them. It is false for Valkey, and for a version that cannot be parsed.
func (v Version) Flawed() bool {
	is, ok := parseRelease(v.Number)
	if v.Program != programRedis || !ok {
		return false
	}
	at := slices.IndexFunc(mended, func(r release) bool { return r.major == is.major && r.minor == is.minor })
	return at < 0 || is.patch < mended[at].patch
}

// parseRelease reads three numbers with points between them, and nothing else.
func parseRelease(text string) (r release, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return r, false
	}
	for i, to := range []*uint64{&r.major, &r.minor, &r.patch} {
		var err error
		if *to, err = strconv.ParseUint(parts[i], 10, 16); err != nil {
			return r, false
		}
	}
	return r, true
}

// Versions returns what the server of each shard says it runs, each server once, sorted by name.
// Servers that do not say are left out.
func (s *Store) Versions(ctx context.Context) (found []Version, err error) {
	all, err := s.memories(ctx)
	for _, m := range all {
		if m.Version.Program != "" {
			found = append(found, m.Version)
		}
	}
	return found, err
}
