package client

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

const (
	// MaxLocalKeys bounds the keys of which a client has a limiter of its own. When there are as
	// many, those are forgotten whose burst is whole again, at most once in forgetEvery. All keys
	// that find no place share one more limiter of the same rate and burst.
	MaxLocalKeys = 4096
	forgetEvery  = time.Second
)

// LocalLimit is what each key is admitted while no node can be asked. A key is a domain with
// descriptors. Each client counts by itself: give a rate that is right for one of them.
type LocalLimit struct {
	Rate  float64 // units a second, above 0
	Burst int     // units at once, 1 at least; a request that costs more is denied
}

func (l LocalLimit) validate() error {
	if !(l.Rate > 0) || math.IsInf(l.Rate, 0) || l.Burst < 1 {
		return fmt.Errorf("quotad: Options.Local is %v units a second and a burst of %d; "+
			"OnUnreachable: Local needs a rate above 0 and a burst of 1 or more", l.Rate, l.Burst)
	}
	return nil
}

// localLimiter has a limiter for each key. Safe for concurrent use.
type localLimiter struct {
	limit LocalLimit

	mu      sync.Mutex
	keys    map[string]*rate.Limiter
	others  *rate.Limiter // of keys that found no place
	forgets time.Time     // when keys were last forgotten
}

func newLocalLimiter(l LocalLimit) *localLimiter {
	return &localLimiter{limit: l, keys: map[string]*rate.Limiter{},
		others: rate.NewLimiter(rate.Limit(l.Rate), l.Burst)}
}

// take charges a cost to a key if it fits. If it does not it says when it will; 0: never.
func (l *localLimiter) take(key string, cost int64, now time.Time) (bool, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cost > int64(l.limit.Burst) {
		return false, 0
	}
	limiter := l.of(key, now)
	if limiter.AllowN(now, int(cost)) {
		return true, 0
	}
	missing := float64(cost) - limiter.TokensAt(now)
	wait := missing / l.limit.Rate * float64(time.Second)
	if wait >= math.MaxInt64 {
		return false, 0
	}
	return false, max(time.Duration(math.Ceil(wait)), 1)
}

// of returns the limiter of a key.
func (l *localLimiter) of(key string, now time.Time) *rate.Limiter {
	if limiter, known := l.keys[key]; known {
		return limiter
	}
	if len(l.keys) >= MaxLocalKeys && now.Sub(l.forgets) >= forgetEvery {
		l.forgets = now
		maps.DeleteFunc(l.keys, func(_ string, of *rate.Limiter) bool {
			return of.TokensAt(now) >= float64(l.limit.Burst)
		})
	}
	if len(l.keys) >= MaxLocalKeys {
		return l.others
	}
	limiter := rate.NewLimiter(rate.Limit(l.limit.Rate), l.limit.Burst)
	l.keys[key] = limiter
	return limiter
}

// keyOf returns a text that is another one for each domain with descriptors.
func keyOf(m *quotadv1.CheckRequest) string {
	var key strings.Builder
	key.WriteString(strconv.Quote(m.GetDomain()))
	for _, name := range slices.Sorted(maps.Keys(m.GetDescriptors())) {
		key.WriteString(strconv.Quote(name))
		key.WriteString(strconv.Quote(m.GetDescriptors()[name]))
	}
	return key.String()
}
