package servers

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	lua "github.com/yuin/gopher-lua"
)

// If a table has a large whole number as a key, the Lua of the embedded server makes it an array up
// to that number. Cells are such numbers, so one row would take gigabytes. MaxArrayIndex is the
// largest key for which it does so.
func init() { lua.MaxArrayIndex = 1 << 16 }

// StartEmbedded starts a Redis inside this process, for demos and tests. It is a slow imitation.
func StartEmbedded(context.Context) (*Server, error) { return StartEmbeddedAt("127.0.0.1:0", "") }

// StartEmbeddedAt is StartEmbedded at an address. A password that is not empty must be given by
// clients.
func StartEmbeddedAt(address, password string) (*Server, error) {
	_, s, err := startEmbedded(address, password)
	return s, err
}

func startEmbedded(address, password string) (*miniredis.Miniredis, *Server, error) {
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true) // without it no key would ever expire
	if password != "" {
		m.RequireAuth(password)
	}
	if err := m.StartAddr(address); err != nil {
		return nil, nil, fmt.Errorf("start the embedded Redis: %w", err)
	}
	return m, &Server{URL: "redis://" + m.Addr(), close: func() error {
		m.Close()
		return nil
	}}, nil
}

// StartDriven starts an embedded Redis for tests in virtual time, which must start it outside their
// bubble. Its clock is set from now each time a node that uses Server.Now reads its own clock,
// which a node does before every script.
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

// Refusing is an embedded Redis that answers everything with an error on demand.
type Refusing struct {
	*Server
	redis *miniredis.Miniredis
}

// StartRefusing starts a Refusing that refuses nothing yet.
func StartRefusing() (*Refusing, error) {
	m, s, err := startEmbedded("127.0.0.1:0", "")
	return &Refusing{Server: s, redis: m}, err
}

// SetError has the server answer everything with an error of this text. With an empty text it
// answers normally again.
func (r *Refusing) SetError(text string) { r.redis.SetError(text) }
