package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// sentinels find the master through the Sentinels. They ask the Sentinels when the master does not
// answer as one, and about once a second. If two servers both take themselves for the master, the
// one that the Sentinels name counts.
type sentinels struct {
	name    string         // the name by which the Sentinels know the master
	at      []string       // addresses of the Sentinels
	base    *redis.Options // options for the master, without its address
	all     []*redis.SentinelClient
	lookout lookout

	mu     sync.Mutex
	client *redis.Client // client of the master as last named; nil: none was
	asked  time.Time
	err    error // why no master was named
}

// askSentinelsEvery is how often the Sentinels are asked while the master answers.
const askSentinelsEvery = time.Second

func newSentinels(a Address, base *redis.Options) *sentinels {
	s := &sentinels{name: a.master, at: a.servers, base: base, err: redis.ErrClosed}
	for _, addr := range a.servers {
		opts := *base
		opts.Addr, opts.DB = addr, 0
		opts.Username, opts.Password = a.sentinelsLogin.user, a.sentinelsLogin.password
		s.all = append(s.all, redis.NewSentinelClient(&opts))
	}
	s.lookout = lookout{timeout: searchTimeouts * base.DialTimeout, search: s.search}
	return s
}

func (s *sentinels) master(ctx context.Context, _ Shard) (*redis.Client, error) {
	client, asked, _ := s.known()
	if client != nil {
		if time.Since(asked) >= askSentinelsEvery {
			s.refresh()
		}
		return client, nil
	}
	select {
	case <-s.refresh():
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	client, _, err := s.known()
	if client == nil {
		return nil, err
	}
	return client, nil
}

func (s *sentinels) known() (*redis.Client, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client, s.asked, s.err
}

func (s *sentinels) refresh() <-chan struct{} { return s.lookout.begin() }

// search asks all Sentinels at once and takes the first answer that names the master.
func (s *sentinels) search(ctx context.Context) {
	type answer struct {
		addr string
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	answers := make(chan answer, len(s.all))
	var asking sync.WaitGroup
	for i, one := range s.all {
		asking.Go(func() {
			at, err := one.GetMasterAddrByName(ctx, s.name).Result()
			if err == nil && len(at) != 2 {
				err = fmt.Errorf("answers %d values for an address", len(at))
			}
			if err != nil {
				answers <- answer{err: fmt.Errorf("sentinel %s: %w", s.at[i], sentinelFault(err))}
				return
			}
			answers <- answer{addr: net.JoinHostPort(at[0], at[1])}
		})
	}
	var named string
	var errs []error
	for range s.all {
		a := <-answers
		if a.err == nil {
			named = a.addr
			break
		}
		errs = append(errs, a.err)
	}
	cancel()
	asking.Wait()
	s.found(named, errors.Join(errs...))
}

// sentinelFault returns a clearer error for a Sentinel that does not know the master's name.
func sentinelFault(err error) error {
	if errors.Is(err, redis.Nil) {
		return errors.New("knows no master of this name; correct the name after the Sentinels in redis.url")
	}
	return err
}

// found takes the master that was named, if any. It closes the connections to another master:
// answers of calls under way there no longer count.
func (s *sentinels) found(addr string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.err = time.Now(), err
	if addr == "" || s.client != nil && s.client.Options().Addr == addr {
		return
	}
	if s.client != nil {
		_ = s.client.Close()
	}
	opts := *s.base
	opts.Addr = addr
	s.client = redis.NewClient(&opts)
}

func (s *sentinels) Close() error {
	s.lookout.close()
	var errs []error
	for _, one := range s.all {
		errs = append(errs, one.Close())
	}
	if client, _, _ := s.known(); client != nil {
		errs = append(errs, client.Close())
	}
	return errors.Join(errs...)
}
