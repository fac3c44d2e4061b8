package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/front/asjson"
	"github.com/quotad/quotad/region/front/roles"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/store"
)

// Problem is an answer that is not a decision, or not only one (RFC 9457). But for denials its type
// is about:blank, so its title is that of the status. Programs tell problems apart by the other
// members.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Field  string `json:"field,omitempty"`
}

// ProblemType is the content type of problems.
const ProblemType = "application/problem+json"

// NewProblem returns a problem of a status.
func NewProblem(code int, detail string) Problem {
	return Problem{Type: "about:blank", Title: http.StatusText(code), Status: code, Detail: detail}
}

// ProblemOf returns the problem for an error, with its status.
func ProblemOf(err error) Problem {
	var field *invalid.Field
	var refused *refusal
	var forbidden *roles.Refusal
	var tooLarge *http.MaxBytesError
	var store *store.Error
	switch {
	case errors.As(err, &field):
		shown := Safe(field)
		p := NewProblem(http.StatusBadRequest, shown.Error())
		p.Field = shown.Within + shown.Name
		return p
	case errors.As(err, &forbidden):
		if forbidden.Caller == "" {
			return NewProblem(http.StatusUnauthorized, forbidden.Error())
		}
		return NewProblem(http.StatusForbidden, forbidden.Error())
	case errors.As(err, &refused):
		return NewProblem(refused.code, refused.detail)
	case errors.As(err, &tooLarge):
		return NewProblem(http.StatusRequestEntityTooLarge,
			fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit))
	case errors.As(err, &store):
		return NewProblem(http.StatusServiceUnavailable, err.Error())
	case errors.Is(err, os.ErrDeadlineExceeded):
		return NewProblem(http.StatusRequestTimeout, "the body did not arrive in time")
	case errors.Is(err, rules.ErrNoSuchBucket):
		return NewProblem(http.StatusNotFound, err.Error())
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return NewProblem(http.StatusServiceUnavailable,
			"the request ended before it was answered; a check, settlement or reset may have been carried out")
	}
	return NewProblem(http.StatusServiceUnavailable, err.Error())
}

// refusal is the error of a request that HTTP has its own status for.
type refusal struct {
	code   int
	detail string
}

// Refuse returns the error of a request that HTTP has its own status for.
func Refuse(code int, detail string) error { return &refusal{code, detail} }

func (r *refusal) Error() string { return r.detail }

// WriteProblem answers with a problem.
func WriteProblem(w http.ResponseWriter, p Problem) {
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="quotad"`)
	}
	Write(w, ProblemType, p.Status, p)
}

// Reply answers with a value as JSON, or with the problem if there is an error.
func Reply(w http.ResponseWriter, v any, err error) {
	if err != nil {
		WriteProblem(w, ProblemOf(err))
		return
	}
	Write(w, "application/json", http.StatusOK, v)
}

// Write answers with the JSON of a message, or of a value of which encoding/json has the form. It is
// complete before its first byte is sent.
func Write(w http.ResponseWriter, contentType string, code int, v any) {
	var body []byte
	var err error
	if m, is := v.(proto.Message); is {
		body = asjson.Marshal(m)
	} else if body, err = json.Marshal(v); err != nil { // our types never fail to marshal
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(append(body, '\n')) // if the write fails, the caller has gone
}

// Safe makes a field error fit to show. The caller chose the name of a descriptor, so it is quoted
// unless it is a plain word, as in descriptors["a\nb"].
func Safe(e *invalid.Field) *invalid.Field {
	shown := *e
	if name, ok := strings.CutPrefix(e.Name, "descriptors."); ok && !plain(name) {
		shown.Name = "descriptors[" + Quote(name) + "]"
	}
	return &shown
}

// plain reports whether a name can be shown without quotes.
func plain(name string) bool {
	for _, c := range []byte(name) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' ||
			c == '-' || c == '.') {
			return false
		}
	}
	return name != "" && len(name) <= maxEchoed
}

// maxEchoed bounds the bytes of input that an answer repeats.
const maxEchoed = 64

// Quote makes input safe to show: ASCII, in quotes, and cut to maxEchoed bytes.
func Quote(s string) string {
	if len(s) > maxEchoed {
		return strconv.QuoteToASCII(s[:maxEchoed]) + "..."
	}
	return strconv.QuoteToASCII(s)
}
