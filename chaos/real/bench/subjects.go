package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/real/process"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// The domain and the only descriptor of all requests.
const (
	domain     = "bench"
	descriptor = "key"
)

const (
	// callTimeout bounds each call. callTimeoutName is the same for a node over HTTP.
	callTimeout     = 4 * time.Second
	callTimeoutName = "4S"
)

// subject is one of the servers that are measured.
type subject struct {
	name  string
	conns []*grpc.ClientConn
	web   *web   // over HTTP; nil: it is called by gRPC, and tells no metrics
	envoy *envoy // of an Envoy rate limit service; nil: it has quotad's API
	// tellsMallocs says that its metrics, over HTTP, tell its allocations.
	tellsMallocs bool

	server   []int // processes of the server; none: not known
	hasRedis bool
	redis    []int         // processes of its Redis; none: it has none, or not known
	scripts  *redis.Client // its Redis; nil: it has none, or not known
	rounds   []round
}

// subjects are all servers of a run.
type subjects struct {
	all   []*subject // in the order in which they are measured
	redis *process.Redis

	ours         []int // all processes of the run, this one included
	redisVersion string
	build        json.RawMessage // what the binary was built from
	version      string          // the same for people
	algorithm    string
	namesLimit   bool // the answers of a compared server tell a limit
}

// start starts the servers. They end with the scope.
func (b *Bench) start(ctx context.Context, scope process.Scope) (*subjects, error) {
	s := &subjects{ours: []int{os.Getpid()}}
	quotad, err := b.startQuotad(ctx, scope, s)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.readVersion(ctx), s.readBuild(ctx, b.Quotad)); err != nil {
		return nil, err
	}
	answer, err := b.sample(ctx, quotad, s)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(scope.TempDir(), "answer")
	if err := os.WriteFile(path, answer, 0o600); err != nil {
		return nil, fmt.Errorf("write the answer of the floor: %w", err)
	}
	args := []string{"--answer", path}
	if b.HTTP {
		args = append(args, "--http")
	}
	floor, err := b.startFloor(ctx, scope, s, "floor", args...)
	if err != nil {
		return nil, err
	}
	lean, err := b.startFloor(ctx, scope, s, "lean", append(args, "--redis",
		s.redis.Address, "--limits", strconv.Itoa(b.Limits))...)
	if err != nil {
		return nil, err
	}
	lean.hasRedis, lean.redis, lean.scripts = true, []int{s.redis.PID()}, s.redis.Client
	s.all = []*subject{quotad, floor, lean}
	if b.RLS {
		if err := b.addRLS(ctx, scope, s, quotad); err != nil {
			return nil, err
		}
	}
	if b.Compare.Address != "" {
		err = b.startCompare(ctx, scope, s)
	}
	return s, err
}

// startQuotad starts a Redis and a node, or a Redis alone if a node runs already.
func (b *Bench) startQuotad(ctx context.Context, scope process.Scope,
	s *subjects) (one *subject, err error) {
	one = &subject{name: "quotad", hasRedis: true}
	address := b.GRPC
	if address != "" {
		if s.redis, err = process.StartRedis(ctx, scope, process.RedisConfig{}); err != nil {
			return nil, err
		}
		one.server, one.redis = split(b.PIDs)
		s.ours = append(s.ours, b.PIDs...)
	} else {
		f, err := process.Start(ctx, scope, process.Config{Quotad: b.Quotad, Limits: b.document(),
			Regions: []process.RegionConfig{{Name: region}}})
		if err != nil {
			return nil, err
		}
		node := f.Regions[0].Nodes[0]
		s.redis, address = f.Regions[0].Redis, node.GRPC
		one.server, one.redis = []int{node.PID()}, []int{s.redis.PID()}
		one.scripts, one.web = s.redis.Client, newWeb(node.HTTP, b.Callers)
		one.web.admin = "http://" + node.Admin
		one.tellsMallocs = true
		s.ours = append(s.ours, node.PID())
	}
	s.ours = append(s.ours, s.redis.PID())
	if one.conns, err = b.connect(scope, address); err != nil || b.GRPC == "" {
		return one, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err := healthv1.NewHealthClient(one.conns[0]).Check(ctx,
		&healthv1.HealthCheckRequest{}); err != nil {
		return nil, fmt.Errorf("ask the node at %s whether it is ready: %w; "+
			"check that --grpc is its gRPC address", address, err)
	}
	return one, nil
}

// startFloor starts a server of the floor.
func (b *Bench) startFloor(ctx context.Context, scope process.Scope, s *subjects, name string,
	args ...string) (*subject, error) {
	p, err := process.StartProgram(ctx, scope, name, b.Quotad,
		append([]string{"bench", "floor"}, args...)...)
	if err != nil {
		return nil, err
	}
	s.ours = append(s.ours, p.PID())
	one := &subject{name: name, server: []int{p.PID()}}
	if b.HTTP {
		one.web = newWeb(p.Address, b.Callers)
		return one, nil
	}
	one.conns, err = b.connect(scope, p.Address)
	return one, err
}

// connect makes the connections to a server. Nothing is sent yet.
func (b *Bench) connect(scope process.Scope, address string) ([]*grpc.ClientConn, error) {
	var all []*grpc.ClientConn
	for range b.connections() {
		c, err := grpc.NewClient("passthrough:///"+address,
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDisableServiceConfig())
		if err != nil {
			return nil, fmt.Errorf("connect to %s: %w", address, err)
		}
		scope.Cleanup(func() { _ = c.Close() }) // its server may be gone already
		all = append(all, c)
	}
	return all, nil
}

// redisServers begin the names of Redis processes.
var redisServers = []string{"redis-server", "valkey-server"}

// split divides processes into those of a server and those of its Redis, by their names.
func split(pids []int) (server, redis []int) {
	for _, pid := range pids {
		name := procfs.name(pid)
		if slices.ContainsFunc(redisServers, func(begins string) bool { return strings.HasPrefix(name, begins) }) {
			redis = append(redis, pid)
		} else {
			server = append(server, pid)
		}
	}
	return server, redis
}

const region = "local"

// document returns the limits document of the node: limits that no load reaches.
func (b *Bench) document() string {
	limit, window := int64(1_000_000_000), time.Hour
	if algorithms.Kind(b.Algorithm) == algorithms.SlidingWindowLog {
		// With its largest limit, and in so short a window, it admits 100,000 a second of one key.
		limit, window = algorithms.MaxLog, 100*time.Millisecond
	}
	text := fmt.Sprintf("version: 1\nregions:\n  %s: {weight: 1}\nlimits:\n", region)
	for n := range b.Limits {
		text += fmt.Sprintf("  - {name: bench-%d, domain: %s, key: [%s], algorithm: %s, "+
			"limit: %d, window: %s, consistency: %s}\n", n+1, domain, descriptor, b.Algorithm,
			limit, window, b.Consistency)
	}
	return text
}

// sample asks for one decision, and returns the encoded answer, which becomes that of the floor:
// JSON over HTTP, else a CheckResponse.
func (b *Bench) sample(ctx context.Context, quotad *subject, s *subjects) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := quotadv1.NewQuotaServiceClient(quotad.conns[0]).Check(ctx, request(0))
	switch {
	case err != nil:
		return nil, fmt.Errorf("ask the node for a decision: %w", err)
	case answer.Decision.GetLimit() == "":
		return nil, fmt.Errorf("no limit of the node at %s applies to domain %s and descriptor "+
			"%s: add one to its document, as --help shows", b.GRPC, domain, descriptor)
	case !answer.Decision.Allowed:
		return nil, fmt.Errorf("the node denied the first request, by limit %s: "+
			"give it a limit that all requests fit into", plain(answer.Decision.Limit))
	}
	s.algorithm = answer.Decision.Algorithm
	if b.HTTP {
		return quotad.web.sample(ctx)
	}
	// The first decisions of a node have shorter numbers than those that are measured.
	answer.Decision.Sequence = max(answer.Decision.Sequence, usualSequence)
	return proto.Marshal(answer)
}

// usualSequence is a number of decisions that a measured node soon reaches. In an answer it takes
// three bytes.
const usualSequence = 100_000
