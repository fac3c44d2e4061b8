package servers

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	lua "github.com/yuin/gopher-lua"
)

// The embedded server's Lua makes a table with a large whole number for a key an array that reaches up to it, which cells
// are: gigabytes for one row. Beyond this key it does not.
func init() { lua.MaxArrayIndex = 1 << 16 }

// StartEmbedded starts a Redis inside this process, for demos and tests: it is an imitation, and slow.
func StartEmbedded(context.Context) (*Server, error) { return StartEmbeddedAt("127.0.0.1:0", "") }

// StartEmbeddedAt is StartEmbedded at an address; where there is a password it is asked for.
func StartEmbeddedAt(address, password string) (*Server, error) {
	_, s, err := startEmbedded(address, password)
	return s, err
}

func startEmbedded(address, password string) (*miniredis.Miniredis, *Server, error) {
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true) // or nothing would ever expire
	if password != "" {
		m.RequireAuth(password)
	}
	if err := m.StartAddr(address); err != nil {
		return nil, nil, fmt.Errorf("start the embedded Redis: %w", err)
	}
	return m, &Server{URL: "redis://" + m.Addr(), close: func() error { m.Close(); return nil }}, nil
}

// StartDriven starts an embedded Redis whose clock is set from now each time a node beside it reads its own, which it
// does before every script: for tests in virtual time, which must start it outside their bubble.
func StartDriven(now func() time.Time) (*Server, error) {
	m, s, err := startEmbedded("127.0.0.1:0", "")
	if err != nil {
		return nil, err
	}
	s.Now = func() time.Time {
		t := now()
		m.SetTime(t)
		return t
	}
	return s, nil
}

// Refusing is an embedded Redis that answers everything with an error while it is told to.
type Refusing struct {
	*Server
	redis *miniredis.Miniredis
}

// StartRefusing starts one that refuses nothing yet.
func StartRefusing() (*Refusing, error) {
	m, s, err := startEmbedded("127.0.0.1:0", "")
	return &Refusing{Server: s, redis: m}, err
}

// SetError has everything answered with an error in these words; with none it is answered again.
func (r *Refusing) SetError(text string) { r.redis.SetError(text) }
