package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"

	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/asjson"
	"github.com/quotad/quotad/region/front/roles"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/store"
)

// problem is an answer that is not a decision, or not only one (RFC 9457). But for denials its type
// is about:blank, so its title is that of the status. Programs tell problems apart by the other
// members.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Field  string `json:"field,omitempty"`
	// Violated names the limits that deny, as RateLimit-Policy does.
	Violated []string `json:"violated-policies,omitempty"`
	*Decision
}

// The types of denials, of draft-ietf-httpapi-ratelimit-headers-10.
const (
	quotaExceeded   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	reducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
)

// denials says of each reason why a request is denied.
var denials = map[admit.Reason]string{
	admit.NoLimit:               "no limit applies to the request, or no limit's match names the value of one of its descriptors, and its domain says to deny then (on_no_limit: deny)",
	admit.OverLimit:             "what this region has of the limit is used up",
	admit.ExceedsRegionCapacity: "the cost is above what this region has of the limit by itself",
	admit.Never:                 "the cost is above the limit",
	admit.Denied:                "the limits document denies what the request describes",
	admit.Recovering:            "the region's store lost its data, and what was used before may fill the limit",
	admit.StoreFailure:          "the region's store did not answer or is not used, and the limit says to deny then (on_store_failure: deny)",
	admit.StoreFailureLocal:     "the region's store does not answer or is not used, and this node's part of the limit is used up",
}

// denial returns the problem of a denied request: 429, or 503 because the store failed. A region
// has reduced capacity while its store fails, or while it has its fixed split alone because it
// cannot reach another region of the limit.
func denial(d admit.Decision) problem {
	p := newProblem(http.StatusTooManyRequests, denials[d.Reason])
	switch d.Reason {
	case admit.StoreFailure:
		p.Status = http.StatusServiceUnavailable
		p.Type, p.Title = reducedCapacity, "Temporary Reduced Capacity"
	case admit.StoreFailureLocal, admit.Recovering:
		p.Type, p.Title = reducedCapacity, "Temporary Reduced Capacity"
	case admit.OverLimit, admit.ExceedsRegionCapacity, admit.Never:
		p.Type, p.Title = quotaExceeded, "Quota Exceeded"
		if d.Degraded && d.Reason != admit.Never {
			p.Type, p.Title = reducedCapacity, "Temporary Reduced Capacity"
			p.Detail += ", and another region of the limit cannot be reached, so that this one has its fixed split alone"
		}
	}
	p.Decision, p.Violated = newDecision(d), violated(d)
	return p
}

func violated(d admit.Decision) (names []string) {
	for _, s := range d.Limits {
		if !s.Admits && !s.Shadow {
			names = append(names, s.Limit)
		}
	}
	if len(names) == 0 && d.Limit != "" {
		names = []string{d.Limit}
	}
	return names
}

func newProblem(code int, detail string) problem {
	return problem{Type: "about:blank", Title: http.StatusText(code), Status: code, Detail: detail}
}

// newProblemOf returns a problem with another status.
func newProblemOf(p problem, code int) problem {
	own := newProblem(code, p.Detail)
	own.Field = p.Field
	return own
}

// toProblem returns the problem for an error, with its status.
func toProblem(err error) problem {
	var field *admit.FieldError
	var refused *refusal
	var forbidden *roles.Refusal
	var tooLarge *http.MaxBytesError
	var store *store.Error
	switch {
	case errors.As(err, &field):
		shown := safe("", field)
		p := newProblem(http.StatusBadRequest, shown.Error())
		p.Field = shown.Field
		return p
	case errors.As(err, &forbidden):
		code, _ := refusalCode(forbidden)
		return newProblem(code, forbidden.Error())
	case errors.As(err, &refused):
		return newProblem(refused.code, refused.detail)
	case errors.As(err, &tooLarge):
		return newProblem(http.StatusRequestEntityTooLarge,
			fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit))
	case errors.As(err, &store):
		return newProblem(http.StatusServiceUnavailable, err.Error())
	case errors.Is(err, os.ErrDeadlineExceeded):
		return newProblem(http.StatusRequestTimeout, "the body did not arrive in time")
	case errors.Is(err, rules.ErrNoSuchBucket):
		return newProblem(http.StatusNotFound, err.Error())
	case errors.Is(err, admit.ErrReceipt):
		return newProblem(http.StatusConflict, receiptRefused(err))
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return newProblem(http.StatusServiceUnavailable,
			"the request ended before it was answered; a check, refund or reset may have been carried out")
	}
	return newProblem(http.StatusServiceUnavailable, err.Error())
}

// refusal is the error of a request that HTTP has its own status for.
type refusal struct {
	code   int
	detail string
}

func (r *refusal) Error() string { return r.detail }

func writeProblem(w http.ResponseWriter, p problem) {
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="quotad"`)
	}
	write(w, "application/problem+json", p.Status, p)
}

// reply answers with a value as JSON, or with the problem if there is an error.
func reply(w http.ResponseWriter, v any, err error) {
	if err != nil {
		writeProblem(w, toProblem(err))
		return
	}
	write(w, "application/json", http.StatusOK, v)
}

// marshal returns the JSON of a message, or of a value of which encoding/json has the form.
func marshal(v any) ([]byte, error) {
	if m, is := v.(proto.Message); is {
		return asjson.Marshal(m), nil
	}
	return json.Marshal(v)
}

// write answers with JSON. The JSON is complete before its first byte is sent.
func write(w http.ResponseWriter, contentType string, code int, v any) {
	body, err := marshal(v)
	if err != nil { // our types never fail to marshal
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(append(body, '\n')) // if the write fails, the caller has gone
}
