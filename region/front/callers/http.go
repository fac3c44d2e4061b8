package callers

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/quotad/quotad/region/base/door"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/wire"
)

const noSuchPath = "there is nothing at this path of the API; " +
	"see /v1/check, /v1/check-batch, /v1/peek, /v1/report, /v1/settle, /v1/authz, /v1/openapi.yaml, /json, /healthcheck, /livez and /readyz; " +
	"the admin listener (listen.admin) has the others"

// routes returns the paths of the API.
func (s *Server) routes() *wire.Routes {
	p := wire.NewRoutes(s.options.Port, s.life, s.missing)
	p.Handle("/v1/check", s.traced("/v1/check", s.check), http.MethodPost)
	p.Handle("/v1/check-batch", s.traced("/v1/check-batch", s.checkBatch), http.MethodPost)
	p.Handle("/v1/peek", s.peek, http.MethodPost)
	p.Handle("/v1/report", s.report, http.MethodPost)
	p.Handle("/v1/settle", s.settle, http.MethodPost)
	p.Handle("/json", s.traced("/json", s.rlsJSON), http.MethodPost)
	p.Handle("/healthcheck", s.life.Healthcheck, http.MethodGet, http.MethodHead)
	p.HandleProxied("/v1/authz", s.traced("/v1/authz", s.authz), http.MethodGet, http.MethodHead,
		http.MethodPost)
	return p
}

// missing answers for all that is not there: a browser that asks for the root is sent to the console,
// if there is one.
func (s *Server) missing(w http.ResponseWriter, r *http.Request) {
	if s.options.Console != "" && r.Method == http.MethodGet && r.URL.Path == "/" &&
		strings.Contains(r.Header.Get("Accept"), "text/html") {
		http.Redirect(w, r, s.options.Console, http.StatusTemporaryRedirect)
		return
	}
	wire.WriteProblem(w, wire.NewProblem(http.StatusNotFound, noSuchPath))
}

func (s *Server) check(w http.ResponseWriter, r *http.Request) {
	d, ok := s.decide(w, r, decodeCheck, s.node.Check)
	if !ok {
		return
	}
	if !d.Allowed {
		setRetryAfter(w.Header(), d)
		p := denial(d)
		wire.Write(w, wire.ProblemType, p.Status, p)
		return
	}
	wire.Write(w, "application/json", http.StatusOK, newDecision(d))
}

// peek answers 200 for every decision, because a peek that would be denied is answered all the
// same.
func (s *Server) peek(w http.ResponseWriter, r *http.Request) {
	if d, ok := s.decide(w, r, decodePeek, s.node.Peek); ok {
		wire.Write(w, "application/json", http.StatusOK, newDecision(d))
	}
}

// report answers 200 for every decision, because a cost that is reported is charged all the same.
func (s *Server) report(w http.ResponseWriter, r *http.Request) {
	if d, ok := s.decide(w, r, decodeReport, s.reported); ok {
		wire.Write(w, "application/json", http.StatusOK, newDecision(d))
	}
}

// reported charges what a use cost that is over.
func (s *Server) reported(ctx context.Context, q admit.Request) (admit.Decision, error) {
	return s.node.Report(ctx, q)
}

// decide reads a request and has it decided. If that fails it writes the answer and returns false.
func (s *Server) decide(w http.ResponseWriter, r *http.Request, decode func([]byte) (admit.Request,
	error),
	by func(context.Context, admit.Request) (admit.Decision, error)) (admit.Decision, bool) {
	d, ok := inHand(s, w, r, wire.SaysJSON, wire.MaxBodyBytes, decode,
		func(ctx context.Context, wait time.Duration, held *door.Held,
			q admit.Request) (admit.Decision, error) {
			if err := s.options.MayName(r.Context(), q.Domain); err != nil {
				return admit.Decision{}, err
			}
			q.Caller, q.Wait = door.HostOf(r.RemoteAddr), wait
			return by(admit.OnHandover(ctx, held.Done), q)
		})
	if ok {
		s.options.Headers.set(w.Header(), d, s.options.MaxRate)
	}
	return d, ok
}

// inHand reads a request with a body of at most the given bytes, takes it in hand, and has it
// decided. It is in hand until do returns, or calls Done. ctx and wait say how long the caller waits
// for that. If that fails inHand writes the answer and returns false.
func inHand[Q, D any](s *Server, w http.ResponseWriter, r *http.Request, typed bool, most int64,
	decode func([]byte) (Q, error), do func(ctx context.Context, wait time.Duration, held *door.Held,
		q Q) (D, error)) (d D, ok bool) {
	ends, named := patient(r)
	ctx := r.Context()
	if named {
		bounded, cancel := context.WithDeadline(ctx, ends)
		defer cancel()
		ctx = bounded
	}
	var held *door.Held
	defer func() {
		if held != nil {
			held.Done()
		}
	}()
	q, err := wire.ReadBody(w, r, typed, most, func(body []byte) (q Q, err error) {
		held = s.take(ctx, "http", door.HostOf(r.RemoteAddr), r.RemoteAddr, len(body), ends, false)
		if held == nil {
			return q, errShed
		}
		return decode(body)
	})
	if err == nil {
		d, err = do(ctx, max(time.Until(ends), 1), held, q)
	}
	if err != nil {
		writeFailure(w, err)
	}
	return d, err == nil
}
