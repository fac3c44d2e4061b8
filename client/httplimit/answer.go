package httplimit

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/quotad/quotad/client"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/base/ratelimit"
)

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
		RetryAfter: ratelimit.RoundUp(d.RetryAfter, time.Millisecond)})
	if err != nil { // texts and numbers never fail to marshal
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if d.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(ratelimit.RoundUp(d.RetryAfter, time.Second), 10))
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(append(body, '\n')) // if the write fails, the caller has gone
}

// setHeaders sets the headers about the limits that applied, as far as something was counted.
func (l *limiter) setHeaders(h http.Header, d client.Decision) {
	if d.Limit == "" {
		return
	}
	h.Set("X-RateLimit-Limit", strconv.FormatInt(d.LimitUnits, 10))
	counted := d.AtUs != 0 || d.Reason == quotadv1.Reason_REASON_STORE_FAILURE_LOCAL
	if counted {
		h.Set("X-RateLimit-Remaining", strconv.FormatInt(d.Remaining, 10))
		h.Set("X-RateLimit-Reset", strconv.FormatInt(
			ratelimit.RoundUp(untilMore(d.RetryAfter, d.ResetAfter), time.Second), 10))
	}
	all := d.Limits
	if len(all) == 0 {
		all = []client.LimitState{{Limit: d.Limit, LimitUnits: d.LimitUnits, Unit: d.Unit,
			Window: d.Window, Counted: counted, Remaining: d.Remaining, ResetAfter: d.ResetAfter,
			RetryAfter: d.RetryAfter, Share: d.Share, Degraded: d.Degraded}}
	}
	fields := ratelimit.Fields{MaxRate: int64(l.maxRate)}
	for _, s := range all {
		if s.Shadow {
			continue
		}
		fields.Add(ratelimit.Limit{Name: s.Limit, Units: s.LimitUnits, Unit: s.Unit, Window: s.Window,
			Counted: s.Counted, Left: s.Remaining, Until: untilMore(s.RetryAfter, s.ResetAfter),
			Share: s.Share, Degraded: s.Degraded})
	}
	fields.Set(h)
}

// untilMore is when a denied request may come again, as Retry-After says; else when the limit is
// whole again.
func untilMore(retry, reset time.Duration) time.Duration {
	if retry > 0 {
		return retry
	}
	return reset
}
