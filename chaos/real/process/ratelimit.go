package process

import (
	"context"
	"net"
	"os"
	"path/filepath"
)

// Ratelimit is envoyproxy/ratelimit with a Redis of its own.
type Ratelimit struct {
	*Process
	Redis *Redis
	// GRPC is host:port of its RateLimitService.
	GRPC string
}

// StartRatelimit starts the program of envoyproxy/ratelimit, which whoever calls has built, and
// waits until it serves. files are its configuration files, by their names. settings are
// NAME=VALUE pairs, as its documentation lists them, beside those that say where it listens and
// where its Redis and its files are. It ends with the scope.
func StartRatelimit(ctx context.Context, scope Scope, path string, files map[string][]byte,
	settings ...string) (*Ratelimit, error) {
	redis, err := StartRedis(ctx, scope, RedisConfig{})
	if err != nil {
		return nil, err
	}
	dir := scope.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "config"), 0o700); err != nil {
		return nil, err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, "config", name), text, 0o600); err != nil {
			return nil, err
		}
	}
	var ports [3]string
	for i := range ports {
		address, err := freeAddress()
		if err != nil {
			return nil, err
		}
		_, ports[i], _ = net.SplitHostPort(address)
	}
	p := &Process{name: "ratelimit", dir: dir}
	scope.Cleanup(p.Kill)
	p.SetEnv(append([]string{"HOST=127.0.0.1", "PORT=" + ports[0], "GRPC_HOST=127.0.0.1",
		"GRPC_PORT=" + ports[1], "DEBUG_HOST=127.0.0.1", "DEBUG_PORT=" + ports[2], "USE_STATSD=false", "DISABLE_STATS=true",
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + redis.Address, "RUNTIME_ROOT=" + filepath.Dir(dir),
		"RUNTIME_SUBDIRECTORY=" + filepath.Base(dir), "RUNTIME_WATCH_ROOT=false"}, settings...)...)
	r := &Ratelimit{Process: p, Redis: redis, GRPC: net.JoinHostPort("127.0.0.1", ports[1])}
	if err := p.start(path); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return r, p.await(ctx, "serving", func(ctx context.Context) error {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.GRPC)
		if err != nil {
			return err
		}
		return c.Close()
	})
}
