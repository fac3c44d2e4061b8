package bench

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// warmUp is how long a load runs before anything is counted: connections are made, and the server
// finds its pace.
const warmUp = 300 * time.Millisecond

// round is what was measured of one subject in one round.
type round struct {
	tally
	lasted time.Duration
	// Processor time of the server and of its Redis; nil: not known, or it has none.
	server, redis *time.Duration
	scripts       *int64 // calls of scripts; nil: not known, or it has no Redis
	// mallocs is how many objects the server allocated; nil: not known.
	mallocs *float64
	// others is the processor time of everything else on the machine; nil: not known.
	others *time.Duration
}

// play measures one subject for one round.
func (b *Bench) play(ctx context.Context, s *subjects, one *subject, number int) (round, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &load{Bench: b, subject: one, round: number, one: make(chan struct{})}
	l.begin(ctx)
	rest(ctx, warmUp)
	before, err := b.read(ctx, s, one)
	if err == nil {
		l.count(ctx, b.Duration)
		var after reading
		if after, err = b.read(ctx, s, one); err == nil {
			l.phase.Store(over)
			r := before.until(after, one)
			r.tally = l.wait()
			return r, ctx.Err()
		}
	}
	cancel()
	l.wait()
	return round{}, fmt.Errorf("measure %s: %w", one.name, err)
}

// rest waits for d, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// reading is what the system and the Redis say at a moment.
type reading struct {
	at        time.Time
	processes map[int]threads // nil: there is no accounting
	machine   time.Duration   // busy time of all processors
	judged    bool            // whether the work of others can be told from ours
	scripts   *int64
	mallocs   *float64
}

func (b *Bench) read(ctx context.Context, s *subjects, one *subject) (r reading, err error) {
	if one.scripts != nil {
		if r.scripts, err = scriptCalls(ctx, one.scripts); err != nil {
			return r, err
		}
	}
	if procfs.known() {
		r.processes = map[int]threads{}
		for _, pid := range s.ours {
			if r.processes[pid], err = procfs.process(pid); err != nil {
				return r, fmt.Errorf("read the processor time of process %d: %w", pid, err)
			}
		}
		if r.machine, err = procfs.machine(); err != nil {
			return r, err
		}
		r.judged = (b.GRPC == "" || len(b.PIDs) > 0) &&
			(b.Compare.Address == "" || len(b.Compare.PIDs) > 0)
	}
	if one.tellsMallocs {
		if r.mallocs, err = one.web.mallocs(ctx); err != nil {
			return r, err
		}
	}
	r.at = time.Now()
	return r, nil
}

// until returns what was measured between two readings.
func (r reading) until(end reading, one *subject) round {
	m := round{lasted: end.at.Sub(r.at)}
	if r.scripts != nil && end.scripts != nil {
		calls := *end.scripts - *r.scripts
		m.scripts = &calls
	}
	if r.mallocs != nil && end.mallocs != nil {
		objects := *end.mallocs - *r.mallocs
		m.mallocs = &objects
	}
	if r.processes == nil || end.processes == nil {
		return m
	}
	ran := func(pids []int) *time.Duration {
		if len(pids) == 0 {
			return nil
		}
		var sum time.Duration
		for _, pid := range pids {
			sum += end.processes[pid].since(r.processes[pid])
		}
		return &sum
	}
	m.server, m.redis = ran(one.server), ran(one.redis)
	if r.judged {
		others := end.machine - r.machine
		for pid, now := range end.processes {
			others -= now.since(r.processes[pid])
		}
		others = max(others, 0) // the two are counted in different steps
		m.others = &others
	}
	return m
}

// scriptCalls returns how many scripts a Redis has run by EVALSHA since its start.
func scriptCalls(ctx context.Context, c *redis.Client) (*int64, error) {
	info := c.InfoMap(ctx, "commandstats")
	if err := info.Err(); err != nil {
		return nil, fmt.Errorf("ask the Redis for its script calls: %w", err)
	}
	calls, err := parseCalls(info.Item("Commandstats", "cmdstat_evalsha"))
	return &calls, err
}

// parseCalls parses the statistics of a command, calls=N,usec=... Without any there was no call.
func parseCalls(stats string) (int64, error) {
	if stats == "" {
		return 0, nil
	}
	calls, _, _ := strings.Cut(strings.TrimPrefix(stats, "calls="), ",")
	n, err := strconv.ParseInt(calls, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("command statistics have %q for the calls of EVALSHA", calls)
	}
	return n, nil
}

// readVersion asks the Redis for its version. Valkey also tells that of the Redis that it is
// compatible with.
func (s *subjects) readVersion(ctx context.Context) error {
	info := s.redis.Client.InfoMap(ctx, "server")
	if err := info.Err(); err != nil {
		return fmt.Errorf("ask the Redis for its version: %w", err)
	}
	s.redisVersion = info.Item("Server", "redis_version")
	if number := info.Item("Server", "valkey_version"); number != "" {
		s.redisVersion += " (Valkey " + number + ")"
	}
	return nil
}

// readBuild asks a binary of quotad what it was built from.
func (s *subjects) readBuild(ctx context.Context, quotad string) error {
	text, err := exec.CommandContext(ctx, quotad, "version").Output()
	if err != nil {
		return fmt.Errorf("ask %s for its version: %w", quotad, err)
	}
	s.version = plain(strings.TrimSpace(string(text)))
	if s.build, err = exec.CommandContext(ctx, quotad, "version", "-o", "json").Output(); err != nil {
		return fmt.Errorf("ask %s for its build: %w", quotad, err)
	}
	return nil
}
