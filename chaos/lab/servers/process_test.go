package servers

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/chaos/lab/redisserver"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestServerCloses: Close may be repeated, and leaves neither a listener nor a file.
func TestServerCloses(t *testing.T) {
	for name, start := range map[string]func(context.Context) (*Server,
		error){"embedded": StartEmbedded, "process": StartProcess} {
		t.Run(name, func(t *testing.T) { closes(t, start) })
	}
}

func closes(t *testing.T, start func(context.Context) (*Server, error)) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	server, err := start(t.Context())
	suite.Must(t, err)
	client := redis.NewClient(&redis.Options{Addr: strings.TrimPrefix(server.URL, "redis://"),
		MaxRetries: -1})
	defer client.Close()
	suite.Must(t, client.Ping(t.Context()).Err())
	for range 2 {
		suite.Must(t, server.Close())
	}
	if err := client.Ping(t.Context()).Err(); err == nil {
		t.Error("a closed server answers")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestStartProcessRefuses: the error says why a server cannot be started.
func TestStartProcessRefuses(t *testing.T) {
	t.Setenv(redisserver.Variable, "")
	t.Run("not installed", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		if _, err := StartProcess(t.Context()); !errors.Is(err, redisserver.ErrMissing) {
			t.Errorf("%v, want %v", err, redisserver.ErrMissing)
		}
	})
	t.Run("ends at once", func(t *testing.T) {
		bin := t.TempDir()
		script := "#!/bin/sh\necho 'FATAL CONFIG FILE ERROR'\nexit 1\n"
		suite.Must(t, os.WriteFile(filepath.Join(bin, "redis-server"), []byte(script),
			0o755))
		t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		_, err := StartProcess(t.Context())
		if err == nil || !strings.Contains(err.Error(), "FATAL CONFIG FILE ERROR") {
			t.Errorf("%v does not say what the server said", err)
		}
	})
	t.Run("the port is another's", func(t *testing.T) {
		other, err := StartProcess(t.Context())
		suite.Must(t, err)
		defer other.Close()
		_, port, err := net.SplitHostPort(strings.TrimPrefix(other.URL, "redis://"))
		suite.Must(t, err)
		taken, err := strconv.Atoi(port)
		suite.Must(t, err)
		if s, err := StartProcessAt(t.Context(), taken); err == nil {
			t.Errorf("the server of another process at %s passed for the one started", s.URL)
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
