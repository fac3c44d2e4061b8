package store

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestScriptsReadAMovedClock: a script reads the time of this machine and what the clock was moved by, forward or back.
func TestScriptsReadAMovedClock(t *testing.T) {
	var ahead atomic.Int64
	s, err := StartMovable(func() time.Duration { return time.Duration(ahead.Load()) })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	url, err := redis.ParseURL(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(url)
	defer client.Close()
	for _, by := range []time.Duration{0, 3 * time.Second, -time.Hour, 48 * time.Hour} {
		ahead.Store(int64(by))
		before := time.Now().Add(by).Truncate(time.Second)
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		seconds, err := client.Eval(t.Context(), "redis.call('SET', 'k', 1) return tonumber(redis.call('TIME')[1])", nil).Int64()
		if read := time.Unix(seconds, 0); err != nil || read.Before(before) || read.After(time.Now().Add(by)) {
			t.Errorf("moved by %v a script read %v, %v", by, read, err)
		}
	}
}
