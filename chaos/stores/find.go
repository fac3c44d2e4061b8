package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/quotad/quotad/chaos/lab/redisserver"
)

// store is a server program, and what was found out about it.
type store struct {
	from    string // where it was found, for people
	path    string
	wheel   bool   // it is of a Python package, which need not be had for every machine
	version string // such as Valkey 9.1.2
	why     string // why it was not run; empty: it was

	tests, passed int
	slowest       script
	scenarios     int // that passed
	rate          float64
	cost          float64  // microseconds of the server's processor time for a decision
	lacks         []string // tests that failed because of what it was built without
	failures      []string // what else failed
}

// failed reports whether something failed that this store was to do.
func (s *store) failed() bool {
	return len(s.failures) > 0 || !s.wheel && (s.why != "" || len(s.lacks) > 0)
}

// find returns the redis-server of this machine, the servers in the folders of wheels, and those at
// paths.
func find(ctx context.Context, folder string, wheels, paths []string) (all []*store) {
	own := &store{from: "this machine"}
	if path, err := redisserver.Path(); err != nil {
		own.why = err.Error()
	} else {
		own.path = path
	}
	all = append(all, own)
	for _, wheel := range wheels {
		s := &store{from: "`" + wheel + "`", wheel: true}
		if s.path = serverIn(filepath.Join(folder, wheel)); s.path == "" {
			s.why = "the package cannot be installed here, or has no server"
		}
		all = append(all, s)
	}
	for _, path := range paths {
		all = append(all, &store{from: "`" + path + "`", path: path})
	}
	for _, s := range all {
		if s.why == "" {
			s.version, s.why = versionOf(ctx, s.path)
		}
	}
	return all
}

// serverIn returns the path of the first server program in a folder; empty: there is none.
func serverIn(folder string) (found string) {
	_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !slices.Contains([]string{"redis-server", "valkey-server"}, d.Name()) {
			return nil // what cannot be read has no server
		}
		// Some wheels lose the right to run it.
		if os.Chmod(path, 0o755) == nil {
			found = path
			return fs.SkipAll
		}
		return nil
	})
	return found
}

var versionLine = regexp.MustCompile(`^(Redis|Valkey) server v=([0-9][0-9A-Za-z.-]{0,31})`)

// versionOf asks a program for its version, or returns why it cannot be run.
func versionOf(ctx context.Context, path string) (version, why string) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	said, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	line, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	if err != nil {
		return "", fmt.Sprintf("it cannot be run: %.200s (%v)", strings.TrimPrefix(line, path+": "), err)
	}
	m := versionLine.FindStringSubmatch(line)
	if m == nil {
		return "", fmt.Sprintf("it is neither Redis nor Valkey: it says %.80q", line)
	}
	return m[1] + " " + m[2], ""
}
