package httplimit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/quotad/quotad/client"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// maxInteger is the largest integer of a structured field (RFC 9651). Larger ones are sent as it.
const maxInteger = 999_999_999_999_999

// problem is an answer to a request that was not served (RFC 9457). Its title is that of the
// status.
type problem struct {
	Type       string `json:"type"`
	Title      string `json:"title"`
	Status     int    `json:"status"`
	Detail     string `json:"detail"`
	Limit      string `json:"limit,omitempty"`
	RetryAfter int64  `json:"retry_after_ms,omitempty"`
}

func writeProblem(w http.ResponseWriter, code int, detail string, d client.Decision) {
	body, err := json.Marshal(problem{Type: "about:blank", Title: http.StatusText(code),
		Status: code, Detail: detail, Limit: d.Limit,
		RetryAfter: roundUp(d.RetryAfter, time.Millisecond)})
	if err != nil { // texts and numbers never fail to marshal
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if d.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(roundUp(d.RetryAfter, time.Second), 10))
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(append(body, '\n')) // if the write fails, the caller has gone
}

// setHeaders sets the headers about the limits that applied, as far as something was counted.
func setHeaders(h http.Header, d client.Decision) {
	if d.Limit == "" {
		return
	}
	h.Set("X-RateLimit-Limit", strconv.FormatInt(d.LimitUnits, 10))
	counted := d.AtUs != 0 || d.Reason == quotadv1.Reason_REASON_STORE_FAILURE_LOCAL
	if counted {
		h.Set("X-RateLimit-Remaining", strconv.FormatInt(d.Remaining, 10))
		h.Set("X-RateLimit-Reset",
			strconv.FormatInt(roundUp(untilMore(d.RetryAfter, d.ResetAfter), time.Second), 10))
	}
	all := d.Limits
	if len(all) == 0 {
		all = []client.LimitState{{Limit: d.Limit, LimitUnits: d.LimitUnits, Counted: counted,
			Remaining: d.Remaining, ResetAfter: d.ResetAfter, RetryAfter: d.RetryAfter}}
	}
	var policies, limits []string
	for _, s := range all {
		name, ok := text(s.Limit)
		if !ok || s.Shadow {
			continue
		}
		policy := fmt.Sprintf("%s;q=%d", name, integer(s.LimitUnits))
		if s.Window > 0 {
			policy += fmt.Sprintf(";w=%d", integer(roundUp(s.Window, time.Second)))
		}
		policies = append(policies, policy)
		if s.Counted {
			limits = append(limits, fmt.Sprintf("%s;r=%d;t=%d", name, integer(s.Remaining),
				integer(roundUp(untilMore(s.RetryAfter, s.ResetAfter), time.Second))))
		}
	}
	set(h, "RateLimit-Policy", policies)
	set(h, "RateLimit", limits)
}

func set(h http.Header, name string, list []string) {
	if len(list) > 0 {
		h.Set(name, strings.Join(list, ", "))
	}
}

// untilMore is when a denied request may come again, as Retry-After says; else when the limit is
// whole again.
func untilMore(retry, reset time.Duration) time.Duration {
	if retry > 0 {
		return retry
	}
	return reset
}

// text returns a string of a structured field, which has ASCII alone.
func text(s string) (string, bool) {
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' {
			return "", false
		}
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`, true
}

func integer(n int64) int64 { return min(max(n, 0), maxInteger) }

// roundUp returns a time in units, because a caller that waits less would be denied again.
func roundUp(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}
