package policy

import (
	"math"
	"time"

	"github.com/quotad/quotad/quantity"
)

// LocalBound is a token bucket that a proxy has for each key of a limit, and asks before it asks
// quotad. It bounds what passes there while quotad does not decide. It begins full, and its tokens
// come one by one, TokensPerFill in each FillInterval; a request takes one.
type LocalBound struct {
	Tokens        uint32
	TokensPerFill uint32
	FillInterval  time.Duration // whole milliseconds, minFillInterval at least
}

// minFillInterval is the shortest that Envoy takes.
const minFillInterval = 50 * time.Millisecond

// LocalBound returns the smallest bucket that admits whatever quotad admits of requests that cost
// one unit or more, if each is decided within wait after the proxy has asked the bucket. ok is
// false for a limit that must not have one: it denies nothing by itself.
//
// quotad admits in a time t at most the burst and t times the limit's rate. The burst is
//
//   - 2 L of windows that begin anew: L at the end of one, and L at the beginning of the next;
//   - L of those that slide;
//   - the burst of buckets.
//
// What reaches the proxy in a time t is decided in t + wait, so the bucket also has what comes in
// wait, and one token for what quotad rounds.
func (l *Limit) LocalBound(wait time.Duration) (b LocalBound, ok bool) {
	if l.Shadow || l.Alternative || l.OnStoreFailure == StoreFailureAllow {
		return LocalBound{}, false
	}
	window := l.ShortestWindow()
	burst := l.Limit
	switch {
	case l.Algorithm.Bucket():
		burst = l.Burst
	case l.Algorithm == FixedWindow:
		burst *= 2
	}
	per := float64(l.Limit) / float64(window)
	b.Tokens = tokens(float64(burst) + math.Ceil(per*float64(wait)) + 1)
	b.TokensPerFill, b.FillInterval = fills(l.Limit, window)
	return b, true
}

// fills returns a refill that is at least as fast as units a window, and as exact as its whole
// numbers allow.
func fills(units quantity.Units, window time.Duration) (uint32, time.Duration) {
	windows := (minFillInterval + window - 1) / window
	units, window = units*quantity.Units(windows), window*windows
	parts := min((units+math.MaxUint32-1)/math.MaxUint32, quantity.Units(window/minFillInterval))
	interval := (window / time.Duration(parts)).Truncate(time.Millisecond)
	return tokens(math.Ceil(float64(units) / float64(parts))), interval
}

// tokens returns the nearest number of tokens that a proxy can count.
func tokens(n float64) uint32 { return uint32(min(n, math.MaxUint32)) }
