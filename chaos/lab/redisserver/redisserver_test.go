package redisserver

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestPath: the program that the environment names goes before that of PATH. If it cannot be run,
// nothing else is run in its place.
func TestPath(t *testing.T) {
	installed, other := t.TempDir(), t.TempDir()
	for _, path := range []string{filepath.Join(installed, "redis-server"), filepath.Join(other, "valkey-server")} {
		suite.Must(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755))
	}
	t.Chdir(other)
	t.Setenv("PATH", installed)
	for given, want := range map[string]string{
		"":                                    filepath.Join(installed, "redis-server"),
		filepath.Join(other, "valkey-server"): filepath.Join(other, "valkey-server"),
		"./valkey-server":                     filepath.Join(other, "valkey-server"),
		"redis-server":                        filepath.Join(installed, "redis-server"),
	} {
		t.Setenv(Variable, given)
		if got, err := Path(); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", given, got, err, want)
		}
	}
	t.Setenv(Variable, filepath.Join(other, "nothing"))
	if got, err := Path(); err == nil || errors.Is(err, ErrMissing) ||
		!strings.Contains(err.Error(), Variable) || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("a path that leads nowhere: %q, %v", got, err)
	}
	t.Setenv(Variable, "")
	t.Setenv("PATH", other)
	if got, err := Path(); !errors.Is(err, ErrMissing) {
		t.Errorf("nothing is installed: %q, %v", got, err)
	}
}
