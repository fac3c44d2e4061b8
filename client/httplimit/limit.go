package httplimit

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/quotad/quotad/client"
	"github.com/quotad/quotad/client/internal/ask"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/base/ratelimit"
)

// reportEvery is the least time between two errors that are logged if Options.Report is nil.
const reportEvery = time.Second

// Checker decides requests. It is a *client.Client.
type Checker = ask.Checker

// Options say what is asked about a request. Domain and Key must be given.
type Options struct {
	Domain string // of the limits document
	Key    Key
	// MaxWait is for how long a request is held that a leaky bucket delays. One that would be held
	// longer is answered 429, and what it was charged stays spent; so it does if its client
	// disconnects meanwhile. 0: no request is held, and each that was admitted is served at once.
	MaxWait time.Duration
	// NoHeaders leaves out the headers about limits, of all answers. Retry-After stays.
	NoHeaders bool
	// MaxRate is how many times the average rate of a limit RateLimit may suggest, for windows of a
	// day and longer: r/t <= MaxRate q/w. 0: 10; negative: any.
	MaxRate int
	// Report is told why a request could not be decided. nil: slog.Default logs it, once a second
	// at most.
	Report func(r *http.Request, err error)
}

// New returns middleware that asks about each request. It panics if the options lack what they must
// have, as http.Handle does.
func New(c Checker, o Options) func(http.Handler) http.Handler {
	switch {
	case c == nil:
		panic("httplimit: New without a client; make one with client.Dial")
	case o.Domain == "":
		panic("httplimit: Options.Domain is empty; name a domain of the limits document")
	case o.Key == nil:
		panic("httplimit: Options.Key is nil; give httplimit.By(...) or a function of your own")
	case o.MaxWait < 0:
		panic(fmt.Sprintf("httplimit: Options.MaxWait is %v; give 0 or more", o.MaxWait))
	}
	if o.Report == nil {
		o.Report = logs(reportEvery)
	}
	maxRate := cmp.Or(o.MaxRate, ratelimit.DefaultMaxRate)
	return func(next http.Handler) http.Handler { return &limiter{c, o, maxRate, next} }
}

// logs returns a Report that logs at most one error in a time.
func logs(every time.Duration) func(*http.Request, error) {
	due := ask.Seldom(every)
	return func(r *http.Request, err error) {
		if due() {
			slog.ErrorContext(r.Context(), "httplimit: a request could not be decided", "error", err)
		}
	}
}

type limiter struct {
	checker Checker
	options Options
	maxRate int
	next    http.Handler
}

// ServeHTTP implements http.Handler.
func (l *limiter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	charge, applies := l.options.Key(r)
	if !applies {
		l.next.ServeHTTP(w, r)
		return
	}
	d, err := l.checker.Check(r.Context(), client.Request{Domain: l.options.Domain,
		Descriptors: charge.Descriptors, Cost: charge.Cost})
	if err != nil {
		if r.Context().Err() == nil {
			l.options.Report(r, err)
		}
		writeProblem(w, http.StatusServiceUnavailable, "the limits could not be checked", d)
		return
	}
	d = ask.MaxDelay(d, l.options.MaxWait)
	if !l.options.NoHeaders {
		l.setHeaders(w.Header(), d)
	}
	if !d.Allowed {
		deny(w, d)
		return
	}
	if l.options.MaxWait > 0 && !ask.Wait(r.Context(), d.Delay) {
		return // nobody reads an answer
	}
	l.next.ServeHTTP(w, r)
}

func deny(w http.ResponseWriter, d client.Decision) {
	switch {
	case d.Reason != quotadv1.Reason_REASON_STORE_FAILURE:
		writeProblem(w, http.StatusTooManyRequests, "the request is over a limit", d)
	case d.Unreachable:
		writeProblem(w, http.StatusServiceUnavailable, "the limits could not be checked", d)
	default:
		writeProblem(w, http.StatusServiceUnavailable,
			"the store of the limits did not answer", d)
	}
}
