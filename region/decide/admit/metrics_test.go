package admit

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// Many goroutines that meet an outcome first all count it.
func TestResolvedCounters(t *testing.T) {
	m := newMetrics()
	const callers, each = 8, 100
	var done sync.WaitGroup
	for range callers {
		done.Go(func() {
			for i := range each {
				m.decided(Decision{Limit: fmt.Sprint(i % 10), Reason: OverLimit})
			}
		})
	}
	done.Wait()
	all := prometheus.NewRegistry()
	all.MustRegister(m.all...)
	families, err := all.Gather()
	suite.Must(t, err)
	counted := map[string]float64{}
	for _, f := range families {
		for _, c := range f.GetMetric() {
			var labels []string
			for _, l := range c.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			counted[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = c.GetCounter().GetValue()
		}
	}
	for i := range 10 {
		if got := counted[fmt.Sprintf("quotad_decisions_total{limit=%d,reason=over_limit}",
			i)]; got != callers*each/10 {
			t.Errorf("limit %d: %v decisions counted, want %d", i, got, callers*each/10)
		}
	}
}

// BenchmarkDecided measures what counting costs a decision: the counter as it is found, and as a
// vector would find it.
func BenchmarkDecided(b *testing.B) {
	m := newMetrics()
	d := Decision{Limit: "account-minute", Reason: WithinLimit}
	b.Run("resolved", func(b *testing.B) {
		for b.Loop() {
			m.decided(d)
		}
	})
	b.Run("vector", func(b *testing.B) {
		for b.Loop() {
			m.decisions.With(prometheus.Labels{"limit": d.Limit, "reason": string(d.Reason)}).Inc()
		}
	})
	b.Run("values", func(b *testing.B) {
		for b.Loop() {
			m.decisions.WithLabelValues(d.Limit, string(d.Reason)).Inc()
		}
	})
	b.Run("time", func(b *testing.B) {
		for b.Loop() {
			m.took(300 * time.Microsecond)
		}
	})
}
