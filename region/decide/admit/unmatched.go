package admit

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/quotad/quotad/policy"
)

const (
	// warnEvery is how often the log is told of requests of one domain to which no limit applies.
	warnEvery = time.Minute
	// maxNamesLogged bounds the text with the names of such a request's descriptors, in bytes.
	maxNamesLogged = 200
)

// unmatched tells the log of requests to which no limit applies, where the document says so.
type unmatched struct {
	log     *slog.Logger
	elapsed func() time.Duration
	count   *prometheus.CounterVec // by domain

	mu    sync.Mutex
	until map[string]time.Duration // by domain of the document, or "" for all others
}

// decide decides a request to which no limit applies, or which has a stray descriptor. One that is
// exempt, whose lists all are, or whose limits are replaced, is meant to have none.
func (u *unmatched) decide(w *way, q Request) Decision {
	rule, known := w.Rules.Domain(q.Domain)
	d := Decision{Allowed: true, Reason: NoLimit}
	if w.exempt() {
		return d
	}
	label := ""
	if known {
		label = q.Domain
	}
	u.count.WithLabelValues(label).Inc()
	switch rule.OnNoLimit {
	case policy.NoLimitDeny:
		d.Allowed = false
	case policy.NoLimitWarn:
		u.warn(label, w.stray, q)
	}
	return d
}

// exempt reports whether the request meets an exemption, or each of its lists does, or they meet limits
// that are replaced.
func (w *way) exempt() bool {
	return w.exempts != nil || w.stray == "" && w.lists != nil && (w.lists.lessened ||
		!slices.ContainsFunc(w.lists.met, func(m Met) bool { return m.Exempt == nil && !m.Replaced }))
}

// warn names the descriptors of the request, without their values.
func (u *unmatched) warn(label, stray string, q Request) {
	u.mu.Lock()
	now := u.elapsed()
	due := now >= u.until[label]
	if due {
		if u.until == nil {
			u.until = map[string]time.Duration{}
		}
		u.until[label] = now + warnEvery
	}
	u.mu.Unlock()
	if !due {
		return
	}
	if stray != "" {
		u.log.Warn("a descriptor of a request has a value that no limit's match names; the request is allowed as far as other limits go (on_no_limit: warn); compare the value with the document, as quotad limits test does",
			slog.String("domain", q.Domain), slog.String("descriptor", stray[:min(len(stray), maxNamesLogged)]))
		return
	}
	names := slices.Sorted(maps.Keys(q.Descriptors))
	for _, list := range q.Lists {
		var of []string
		for _, e := range list.Entries {
			of = append(of, e.Name)
		}
		names = append(names, strings.Join(of, ">"))
	}
	text := strings.Join(names, " ")
	u.log.Warn("no limit applies to a request, which is allowed (on_no_limit: warn); compare its domain and descriptors with the document, as quotad limits test does",
		slog.String("domain", q.Domain), slog.String("descriptors", text[:min(len(text), maxNamesLogged)]))
}
