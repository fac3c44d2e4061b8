package door

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// logEvery is the shortest time between two log entries about the same.
	logEvery = time.Minute
	// largestStack bounds the logged stack, in bytes.
	largestStack = 8 << 10
	// largestValue bounds the logged text of a panic's value, in bytes. It may contain what a
	// caller sent.
	largestValue = 256
)

func cut(s string, most int) string {
	if len(s) > most {
		return s[:most] + " ..."
	}
	return s
}

// Panics recovers from panics, counts each, and logs at most one a minute for each place. Safe for
// concurrent use.
type Panics struct {
	log    *slog.Logger
	prefix string
	count  func(where string)

	mu     sync.Mutex
	places map[string]*Seldom
}

// NewPanics returns a Panics whose places begin with prefix. It calls count for each panic.
func NewPanics(log *slog.Logger, prefix string, count func(where string)) *Panics {
	return &Panics{log: log, prefix: prefix, count: count, places: map[string]*Seldom{}}
}

// Tell sets where panics are logged and counted from now on. Call it before any panic can happen.
func (p *Panics) Tell(log *slog.Logger, count func(where string)) { p.log, p.count = log, count }

// Fault is all that a caller is told about a fault of quotad. The log has the rest.
const Fault = "a fault of quotad, not of the request; its log has the details"

// Recover, deferred, turns a panic into a gRPC error. There are few places, and no caller chooses
// one.
func (p *Panics) Recover(place string, err *error) {
	if was := recover(); was != nil {
		p.Recovered(place, was)
		*err = status.Error(codes.Internal, "quotad failed to answer: "+Fault)
	}
}

// Catch, deferred, ends a panic when no caller waits for an answer.
func (p *Panics) Catch(place string) {
	if was := recover(); was != nil {
		p.Recovered(place, was)
	}
}

// Recovered counts and logs a panic that was recovered from. was may be an error that has the Stack
// of a panic that was recovered elsewhere; then that stack is logged.
func (p *Panics) Recovered(place string, was any) {
	where := p.prefix + place
	p.count(where)
	p.mu.Lock()
	seldom := p.places[where]
	if seldom == nil {
		seldom = &Seldom{}
		p.places[where] = seldom
	}
	p.mu.Unlock()
	if since, due := seldom.Due(time.Now()); due {
		stack := debug.Stack()
		if at, elsewhere := was.(interface{ Stack() []byte }); elsewhere {
			stack = at.Stack()
		}
		p.log.Error("recovered from a panic; please report it", "where", where, "panic",
			cut(fmt.Sprint(was), largestValue), "unlogged", since,
			"stack", cut(string(stack), largestStack))
	}
}

// Seldom lets one event a minute through. The zero value is ready. Safe for concurrent use.
type Seldom struct {
	mu     sync.Mutex
	last   time.Time
	passed uint64
}

// Due reports whether to let an event through. passed is the number of events held back since the last
// one let through.
func (s *Seldom) Due(now time.Time) (passed uint64, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if since := now.Sub(s.last); !s.last.IsZero() && since >= 0 && since < logEvery {
		s.passed++
		return 0, false
	}
	passed, s.passed, s.last = s.passed, 0, now
	return passed, true
}
