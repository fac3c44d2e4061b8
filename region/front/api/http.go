package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/base/door"
	"github.com/quotad/quotad/region/decide/admit"
)

// maxBodyBytes bounds the body of a request, but for a batch.
const maxBodyBytes = 64 << 10

const noSuchPath = "there is nothing at this path of the API; " +
	"see /v1/check, /v1/check-batch, /v1/peek, /v1/refund, /v1/authz, /v1/openapi.yaml, /json, /livez and /readyz; " +
	"the admin listener (listen.admin) has the others"

const (
	wantJSON  = "send the request with Content-Type: application/json, in UTF-8"
	otherSite = "a browser sent this for a page of another site (Origin, Sec-Fetch-Site), which quotad does not take; " +
		"call it from a service, not from a page"
)

// handler returns the handler of the API's paths.
func (s *Server) handler() http.Handler {
	return s.recovering(s.ownHosts(s.options.API, s.toConsole(sameSite(s.routes().mux))))
}

// toConsole sends browsers that ask for the root to the console, if there is one.
func (s *Server) toConsole(next http.Handler) http.Handler {
	if s.options.Console == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Path == "/" &&
			strings.Contains(r.Header.Get("Accept"), "text/html") {
			http.Redirect(w, r, s.options.Console, http.StatusTemporaryRedirect)
			return
		}
		next.ServeHTTP(w, r)
	})
}

const authzPath = "/v1/authz"

// routes returns the paths of the API.
func (s *Server) routes() *routes {
	p := newRoutes(s.options.API.Guard, noSuchPath)
	p.handle("/v1/check", s.traced("/v1/check", s.check), http.MethodPost)
	p.handle("/v1/check-batch", s.traced("/v1/check-batch", s.checkBatch), http.MethodPost)
	p.handle("/v1/peek", s.peek, http.MethodPost)
	p.handle("/v1/refund", s.refund, http.MethodPost)
	p.handle("/json", s.traced("/json", s.rlsJSON), http.MethodPost)
	p.handleAny(authzPath, s.traced(authzPath, s.authz), http.MethodGet, http.MethodHead, http.MethodPost)
	p.handle("/v1/openapi.yaml", describe, http.MethodGet, http.MethodHead)
	p.handle("/livez", livez, http.MethodGet, http.MethodHead)
	p.handle("/readyz", s.readyz, http.MethodGet, http.MethodHead)
	return p
}

// sameSite refuses requests that a page of another site makes its visitor's browser send, unless
// they change nothing. Callers that are not browsers send no site and pass. So do proxies, which
// pass on what their clients' browsers send.
func sameSite(next http.Handler) http.Handler {
	p := http.NewCrossOriginProtection()
	p.AddInsecureBypassPattern(authzPath)
	p.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, newProblem(http.StatusForbidden, otherSite))
	}))
	return p.Handler(next)
}

// only refuses every method but the given ones.
func only(h http.HandlerFunc, methods ...string) http.Handler {
	allow := strings.Join(methods, ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(methods, r.Method) {
			h(w, r)
			return
		}
		w.Header().Set("Allow", allow)
		writeProblem(w, newProblem(http.StatusMethodNotAllowed, "use "+allow))
	})
}

// recovering answers 500 if a handler panics.
func (s *Server) recovering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch p := recover(); p {
			case nil:
			case http.ErrAbortHandler: // net/http ends the connection on it
				panic(p)
			default:
				s.webPanics.Recovered(r.Pattern, p)
				writeProblem(w, newProblem(http.StatusInternalServerError, door.Fault))
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func (s *Server) check(w http.ResponseWriter, r *http.Request) {
	d, ok := s.decide(w, r, decodeCheck, s.node.Check)
	if !ok {
		return
	}
	if !d.Allowed {
		setRetryAfter(w.Header(), d)
		writeProblem(w, denial(d))
		return
	}
	write(w, "application/json", http.StatusOK, newDecision(d))
}

// peek answers 200 for every decision, because a peek that would be denied is answered all the
// same.
func (s *Server) peek(w http.ResponseWriter, r *http.Request) {
	if d, ok := s.decide(w, r, decodePeek, s.node.Peek); ok {
		write(w, "application/json", http.StatusOK, newDecision(d))
	}
}

// decide reads a request and has it decided. If that fails it writes the answer and returns false.
func (s *Server) decide(w http.ResponseWriter, r *http.Request, decode func([]byte) (admit.Request,
	error),
	by func(context.Context, admit.Request) (admit.Decision, error)) (admit.Decision, bool) {
	d, ok := inHand(s, w, r, saysJSON, maxBodyBytes, decode,
		func(ctx context.Context, wait time.Duration, held *door.Held,
			q admit.Request) (admit.Decision, error) {
			if err := s.mayName(r.Context(), q.Domain); err != nil {
				return admit.Decision{}, err
			}
			q.Caller, q.Wait = door.HostOf(r.RemoteAddr), wait
			return by(admit.OnHandover(ctx, held.Done), q)
		})
	if ok {
		s.options.Headers.set(w.Header(), d)
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
	q, err := readBody(w, r, typed, most, func(body []byte) (q Q, err error) {
		held = s.take(ctx, "http", door.HostOf(r.RemoteAddr), r.RemoteAddr, len(body), ends, false)
		if held == nil {
			return q, errShed
		}
		return decode(body)
	})
	if err == nil {
		d, err = do(ctx, max(time.Until(ends), 1), held, q)
	}
	if err == errShed {
		writeBusy(w, overloaded, shedRetry)
	} else if err != nil {
		writeFailure(w, err)
	}
	return d, err == nil
}

// Whether a request must say that its body is JSON.
const saysJSON, anyType = true, false

// readBody reads the JSON body of a request, of at most the given bytes.
func readBody[T any](w http.ResponseWriter, r *http.Request, typed bool, most int64,
	decode func([]byte) (T, error)) (q T, err error) {
	if typed && !isJSON(r.Header.Values("Content-Type")) {
		return q, &refusal{http.StatusUnsupportedMediaType, wantJSON}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		return q, unreadable(err)
	}
	return decode(body)
}

// answer reads a request that comes as JSON, has it done, and writes what came of it as JSON.
func answer[Q any](w http.ResponseWriter, r *http.Request, decode func([]byte) (Q, error),
	do func(Q) (any, error)) {
	q, err := readBody(w, r, saysJSON, maxBodyBytes, decode)
	var done any
	if err == nil {
		done, err = do(q)
	}
	reply(w, done, err)
}

// unreadable returns the error for a body that could not be read. It was too large, too slow, or
// not as its headers say, and each is the caller's fault. A caller that has gone reads no answer.
func unreadable(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) || errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("read the body: %w", err)
	}
	return &admit.FieldError{Field: wholeBody,
		Problem: "is not whole, or its chunks are malformed; send as many bytes as Content-Length says, or chunks as HTTP/1.1 has them"}
}

// isJSON accepts application/json without a charset or in UTF-8. It refuses a missing content type,
// because pages of other sites can send that without the browser asking the node first.
func isJSON(values []string) bool {
	if len(values) != 1 {
		return false
	}
	kind, params, err := mime.ParseMediaType(values[0])
	charset, given := params["charset"]
	return err == nil && kind == "application/json" &&
		(!given || strings.EqualFold(charset, "utf-8"))
}

func (s *Server) bucket(w http.ResponseWriter, r *http.Request) {
	domain, descriptors, err := parseQuery(r.URL.RawQuery)
	var b region.Bucket
	if err == nil {
		err = s.mayNameAdmin(r.Context(), domain)
	}
	if err == nil {
		b, err = s.node.Bucket(r.Context(), r.PathValue("limit"), domain, descriptors)
	}
	if err != nil {
		writeProblem(w, toProblem(err))
		return
	}
	write(w, "application/json", http.StatusOK, bucketMessage(b))
}

// parseQuery reads a domain and descriptors. Every error is a *admit.FieldError.
func parseQuery(raw string) (domain string, descriptors map[string]string, err error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return "", nil, &admit.FieldError{Field: "query",
			Problem: "is malformed; write it as ?domain=api&account=42, percent-encoded"}
	}
	descriptors = map[string]string{}
	for name, values := range query {
		field := "descriptors." + name
		if name == "domain" {
			field = name
		}
		switch {
		case len(values) > 1:
			return "", nil, &admit.FieldError{Field: field, Problem: "is given more than once"}
		case !utf8.ValidString(name) || !utf8.ValidString(values[0]):
			return "", nil, &admit.FieldError{Field: field, Problem: "is not valid UTF-8"}
		case name == "domain":
			domain = values[0]
		default:
			descriptors[name] = values[0]
		}
	}
	return domain, descriptors, nil
}

// errSeeStatus stands for why a node is not ready, where not everybody may know.
var errSeeStatus = errors.New("see its status, on the admin listener")

func livez(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
}

// readyz says why the node is not ready, or which limits it cannot decide whole, only where everybody
// may know: others see it in the status.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if err := s.ready(); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		if s.options.API.Guard != nil {
			err = errSeeStatus
		}
		_, _ = fmt.Fprintf(w, "not ready: %v\n", err)
		return
	}
	_, _ = io.WriteString(w, "ok\n")
	if s.options.API.Guard != nil {
		return
	}
	for _, r := range s.node.Recovering() {
		_, _ = fmt.Fprintf(w, "%d keys of %s are recovering since %s\n", r.Buckets, r.Limit, r.Since.UTC().Format(time.RFC3339))
	}
}
