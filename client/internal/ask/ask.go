// Package ask is what the packages have in common that stand before other people's handlers.
package ask

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/quotad/quotad/client"
)

// Checker decides requests. It is a *client.Client.
type Checker interface {
	Check(ctx context.Context, q client.Request) (client.Decision, error)
}

const (
	// maxValue is the longest value of a descriptor that a node takes, in bytes.
	maxValue = 256
	// networkBits is how much of an IPv6 address tells callers apart: whoever has one has all
	// addresses of its network.
	networkBits = 64
)

// Fitting returns a value that a node takes: the value itself, or "sha256:" and its digest in hex
// if it has more than 256 bytes or is not UTF-8.
func Fitting(value string) string {
	if len(value) <= maxValue && utf8.ValidString(value) {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Network returns an IPv4 address, or the network of an IPv6 address.
func Network(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if a.Is4() {
		return a.String()
	}
	p, err := a.Prefix(networkBits)
	if err != nil { // never: it is an IPv6 address
		return a.String()
	}
	return p.String()
}

// MaxDelay denies an admitted request whose queue delay exceeds most, and sets RetryAfter to the
// difference. most 0 means no maximum.
func MaxDelay(d client.Decision, most time.Duration) client.Decision {
	if most > 0 && d.Allowed && d.Delay > most {
		d.Allowed, d.RetryAfter = false, d.Delay-most
	}
	return d
}

// Wait reports whether a time passed before the context ended.
func Wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Seldom returns a function that returns true at most once in a time. It is safe for concurrent
// use.
func Seldom(every time.Duration) func() bool {
	begun := time.Now()
	var from atomic.Int64 // when it may return true again, since begun
	return func() bool {
		now := int64(time.Since(begun))
		due := from.Load()
		return now >= due && from.CompareAndSwap(due, now+int64(every))
	}
}
