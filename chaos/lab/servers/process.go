package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/chaos/lab/redisserver"
)

// Server is a Redis that this process started. It keeps nothing when it ends.
type Server struct {
	URL string
	// Now is the clock that nodes using this server must use; nil: the wall clock.
	Now   func() time.Time
	close func() error
}

// Close ends the server; further calls do nothing.
func (s *Server) Close() error { return s.close() }

// StartProcess starts a redis-server, or what package redisserver finds, on a free loopback port and waits until it answers.
func StartProcess(ctx context.Context) (*Server, error) { return StartProcessWith(ctx) }

// StartProcessWith is StartProcess with further arguments for redis-server, after its own ones.
func StartProcessWith(ctx context.Context, args ...string) (*Server, error) {
	path, err := redisserver.Path()
	if err != nil {
		return nil, err
	}
	var last error
	for range 5 { // another process may take the free port first
		port, err := FreePort()
		if err != nil {
			return nil, err
		}
		s, err := startProcess(ctx, path, port, args...)
		if err == nil || ctx.Err() != nil {
			return s, err
		}
		last = err
	}
	return nil, fmt.Errorf("gave up after five tries: %w", last)
}

// StartProcessAt is StartProcessWith at a port of 127.0.0.1.
func StartProcessAt(ctx context.Context, port int, args ...string) (*Server, error) {
	path, err := redisserver.Path()
	if err != nil {
		return nil, err
	}
	return startProcess(ctx, path, port, args...)
}

func startProcess(ctx context.Context, path string, port int, args ...string) (*Server, error) {
	dir, err := os.MkdirTemp("", "quotad-redis-")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	cmd := exec.Command(path, append([]string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no",
		"--dir", dir, "--maxmemory-policy", "noeviction", "--daemonize", "no"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	end := sync.OnceValue(func() error {
		_ = cmd.Process.Kill()
		<-exited
		return os.RemoveAll(dir)
	})
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if err := answers(ctx, addr, cmd.Process.Pid, exited); err != nil {
		_ = end()
		return nil, fmt.Errorf("start %s: %w\n%s", path, err, out.String())
	}
	return &Server{URL: "redis://" + addr, close: end}, nil
}

// answers waits until the server that is the process pid answers. Another one may have taken the port
// between the choice of it and the start: what answers there then is another process.
func answers(ctx context.Context, addr string, pid int, exited <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DisableIdentity: true})
	defer client.Close()
	for {
		info, err := client.Info(ctx, "server").Result()
		if err == nil && strings.Contains(info, fmt.Sprintf("\r\nprocess_id:%d\r\n", pid)) {
			return nil
		}
		if err == nil {
			err = errors.New("another process answers")
		}
		select {
		case <-exited:
			return errors.New("it ended at once")
		case <-ctx.Done():
			return fmt.Errorf("no answer on %s: %w", addr, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// FreePort returns a port of 127.0.0.1 that nobody listens on.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
