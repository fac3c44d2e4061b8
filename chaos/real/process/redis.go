package process

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/chaos/lab/redisserver"
)

// startTimeout is the time that a process has until it serves, on a starved machine too.
const startTimeout = time.Minute

// RedisConfig describes a Redis.
type RedisConfig struct {
	// Address is where it listens, host:port on loopback; empty: a free port of 127.0.0.1.
	Address string
	// ReplicaOf is its primary; nil: it is itself a primary.
	ReplicaOf *Redis
	// Args are further arguments, such as --appendonly yes. Without them nothing is kept when the
	// process ends.
	Args []string
}

// Redis is a redis-server. Safe for concurrent use.
type Redis struct {
	Process
	// Address is host:port. URL is the same address for a node file.
	Address, URL string
	// Client is connected to it.
	Client *redis.Client

	path string
	args []string
}

// Errors are returned by each command; go-redis would also print them.
func init() { redis.SetLogger(silence{}) }

// silence is a logger for go-redis that discards everything.
type silence struct{}

// Printf implements the logger of go-redis.
func (silence) Printf(context.Context, string, ...any) {}

// StartRedis starts a redis-server, or what package redisserver finds, and waits until it answers.
func StartRedis(ctx context.Context, scope Scope, c RedisConfig) (*Redis, error) {
	path, err := redisserver.Path()
	if err != nil {
		return nil, err
	}
	if c.Address == "" {
		if c.Address, err = freeAddress(); err != nil {
			return nil, err
		}
	}
	host, port, err := net.SplitHostPort(c.Address)
	if err != nil {
		return nil, fmt.Errorf("address of a Redis: %w; give host:port", err)
	}
	r := &Redis{Address: c.Address, URL: "redis://" + c.Address + "/0", path: path,
		Client: redis.NewClient(&redis.Options{Addr: c.Address, MaxRetries: -1, DialerRetries: 1,
			DisableIdentity: true})}
	r.name, r.dir = "redis-server "+c.Address, scope.TempDir()
	r.args = []string{"--port", port, "--bind", host, "--save", "", "--appendonly", "no",
		"--maxmemory-policy", "noeviction",
		"--repl-diskless-sync-delay", "0", "--dir", r.dir, "--daemonize", "no"}
	if c.ReplicaOf != nil {
		host, port, _ := net.SplitHostPort(c.ReplicaOf.Address)
		r.args = append(r.args, "--replicaof", host+" "+port)
	}
	r.args = append(r.args, c.Args...)
	scope.Cleanup(func() {
		r.Kill()
		_ = r.Client.Close() // its connections are gone already
	})
	return r, r.Start(ctx)
}

// Start starts it again after it has ended, and waits until it answers.
func (r *Redis) Start(ctx context.Context) error {
	if err := r.start(r.path, r.args...); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return r.await(ctx, "answering",
		func(ctx context.Context) error { return r.Client.Ping(ctx).Err() })
}

// freeAddress returns an address with a port that is free now. Another process may take the port
// before it is used; then the start fails.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(l.Addr().(*net.TCPAddr).Port)), nil
}
