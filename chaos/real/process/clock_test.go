package process

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestScriptsReadAMovedClock: a script reads this machine's time plus what the clock was moved by,
// forward or back.
func TestScriptsReadAMovedClock(t *testing.T) {
	c, err := startClock(t)
	suite.Must(t, err)
	url, err := redis.ParseURL(c.URL)
	suite.Must(t, err)
	client := redis.NewClient(url)
	defer client.Close()
	for _, by := range []time.Duration{0, 3 * time.Second, -time.Hour, 48 * time.Hour} {
		ahead := c.Move(by)
		before := time.Now().Add(ahead).Truncate(time.Second)
		suite.Must(t, client.Ping(t.Context()).Err())
		seconds, err := client.Eval(t.Context(),
			"redis.call('SET', 'k', 1) return tonumber(redis.call('TIME')[1])", nil).Int64()
		if read := time.Unix(seconds, 0); err != nil || read.Before(before) ||
			read.After(time.Now().Add(ahead)) {
			t.Errorf("ahead by %v a script read %v, %v", ahead, read, err)
		}
	}
}
