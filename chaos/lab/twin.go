package lab

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/region/store"
)

// Twin is a Redis server in memory: one shard, whose scripts the twin of package algorithms answers at once. Any number
// of nodes may have it as their server. Safe for concurrent use, but for its Ledger.
type Twin struct {
	mu     sync.Mutex // held while a round trip is made
	outage outage
	service
	twin   *algorithms.Twin
	clock  func() int64
	replid string
	starts int              // how often it was restarted
	opened int              // secrets given out
	ends   map[string]int64 // server time at which a Once or a receipt is forgotten, by its key
	left   int              // how many of them were left when all were last looked at
}

// NewTwin returns an empty server: clock is its TIME in us, replid its master_replid. With an empty replid its data
// has no identity, as that of the embedded Redis.
func NewTwin(clock func() int64, replid string) *Twin {
	return &Twin{twin: &algorithms.Twin{}, clock: clock, replid: replid, ends: map[string]int64{}}
}

// Ledger returns what the server holds.
func (s *Twin) Ledger() *algorithms.Twin { return s.twin }

// Replid returns the server's master_replid.
func (s *Twin) Replid() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replid
}

// SetDown takes the server out of reach: no connection to it comes about.
func (s *Twin) SetDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outage.SetDown(down)
}

// FailNext has the next n round trips time out before they get to the server: their calls do not run, which their
// caller cannot know.
func (s *Twin) FailNext(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outage.FailNext(n)
}

// LoseReply has the next n round trips time out after they got to the server: their calls run.
func (s *Twin) LoseReply(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outage.LoseReply(n)
}

// SetService has each call take so long from now on, by a clock that never goes back. A round trip that is not done within
// the deadline times out, though its calls run: a node learns only that, as from a Redis under load.
func (s *Twin) SetService(each time.Duration, elapsed func() time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setService(each, elapsed)
}

// Flush loses all data, as FLUSHALL does: the server's master_replid stays.
func (s *Twin) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
}

func (s *Twin) flush() {
	s.twin.Flush()
	clear(s.ends)
}

// Restart loses all data and gives the server another master_replid, as a Redis does that saves nothing.
func (s *Twin) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	s.starts++
	s.replid = fmt.Sprintf("%s.%d", s.replid, s.starts)
}

// Delete deletes a key, the token's among them, as DEL does.
func (s *Twin) Delete(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key == store.TokenKey(store.Whole) {
		s.twin.DeleteToken()
		return
	}
	s.twin.Delete(key)
	s.twin.Forget(key)
	delete(s.ends, key)
}

// Expire drops what the server's clock says is over. Calls of stores do so too, as far as they believe that clock.
func (s *Twin) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.twin.Expire(s.clock())
}

// Holds says whether there is a bucket under a key.
func (s *Twin) Holds(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.twin.Holds(key)
}

// Replica returns another server with a copy of this one's data as it is now, to be promoted as it is at any time: with
// a master_replid of its own, while its token says on which server the store was opened. Nothing that this server does
// later reaches it.
func (s *Twin) Replica(replid string) *Twin {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Twin{twin: s.twin.Clone(), clock: s.clock, replid: replid, ends: maps.Clone(s.ends), left: s.left}
}

// newSecret returns one that is the same in every run of a simulation.
func (s *Twin) newSecret() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	return fmt.Sprintf("secret %d of %s", s.opened, s.replid)
}

// decide answers the decide script, and sees to it that what was admitted is remembered under its Once in time.
func (s *Twin) decide(now int64, c algorithms.Decide) algorithms.Decided {
	if c.Once == "" {
		return s.twin.Decide(now, c)
	}
	s.forget(c.Once, now)
	d := s.twin.Decide(now, c)
	if d.Status == algorithms.StatusOK && !d.Repeated && !d.TooOften && c.Commit && d.Answers[0].Admitted {
		s.remember(c.Once, now, d.Now/1000+algorithms.RememberedFor)
	}
	return d
}

// refund answers the refund script, and sees to it that the receipt is remembered in time.
func (s *Twin) refund(now int64, c algorithms.Refund) algorithms.Refunded {
	s.forget(c.Receipt, now)
	s.forget(c.Once, now)
	g := s.twin.Refund(now, c)
	if g.Status == algorithms.StatusOK && !g.Repeated {
		s.remember(c.Receipt, now, max(c.RememberedUntil(), (g.Now+algorithms.KeySlack)/1000))
	}
	return g
}

// fewestRemembered is how many keys are remembered before it is worth looking for those that need not be.
const fewestRemembered = 1000

// remember notes until which store time, in milliseconds, a key is remembered. Each time there are twice as many keys as the last look
// left, those whose time is up are forgotten.
func (s *Twin) remember(key string, now, untilMillis int64) {
	s.ends[key] = untilMillis * 1000
	if len(s.ends) < 2*s.left+fewestRemembered {
		return
	}
	for key := range s.ends {
		s.forget(key, now)
	}
	s.left = len(s.ends)
}

// forget forgets a key whose time is up.
func (s *Twin) forget(key string, now int64) {
	if end, remembered := s.ends[key]; remembered && now >= end {
		s.twin.Forget(key)
		delete(s.ends, key)
	}
}
