package roles

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotad/quotad/region/base/repeat"
)

// lookEvery is how often the roles file is read, to see whether it changed.
const lookEvery = time.Second

// Book has the roles file in force. Safe for concurrent use.
type Book struct {
	path    string
	changed func(error)
	inForce atomic.Pointer[Callers]

	mu    sync.Mutex
	seen  []byte
	fault string // why the file is not in force as it is; empty: it is

	changes *prometheus.CounterVec
	callers prometheus.GaugeFunc
}

// OpenBook reads a roles file. From then on changed is called once for each change of the file:
// with nil if it is in force, or with what is wrong with it, in which case the last good one stays.
func OpenBook(path string, changed func(error)) (*Book, error) {
	src, err := read(path)
	if err != nil {
		return nil, err
	}
	callers, err := Parse(path, src)
	if err != nil {
		return nil, err
	}
	b := &Book{path: path, changed: changed, seen: src,
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "quotad_roles_changes_total",
			Help: "Changes of the roles file, by what came of them: taken, or refused where the last good one stayed."},
			[]string{"outcome"})}
	b.callers = prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "quotad_roles_callers",
		Help: "Callers of the roles file in force."},
		func() float64 { return float64(b.Callers().Count()) })
	b.inForce.Store(callers)
	return b, nil
}

// Callers returns the callers in force.
func (b *Book) Callers() *Callers { return b.inForce.Load() }

// Fault says why the file is not in force as it is now, empty if it is.
func (b *Book) Fault() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fault
}

// Follow reads the file again and again, until ctx ends.
func (b *Book) Follow(ctx context.Context) {
	repeat.Every(ctx, lookEvery, func(time.Time) { b.look() })
}

// look reads the file again, and puts it in force if it changed.
func (b *Book) look() {
	changed, err := b.reread()
	if !changed {
		return
	}
	outcome := "taken"
	if err != nil {
		outcome = "refused"
	}
	b.changes.WithLabelValues(outcome).Inc()
	b.changed(err)
}

// reread reports whether there is something to tell: a file that is in force, or why it is not.
func (b *Book) reread() (changed bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	src, err := read(b.path)
	if err == nil && b.fault == "" && bytes.Equal(src, b.seen) {
		return false, nil
	}
	var callers *Callers
	if err == nil {
		callers, err = Parse(b.path, src)
	}
	if err != nil {
		already := err.Error() == b.fault
		b.fault = err.Error()
		return !already, err
	}
	b.fault, b.seen = "", src
	b.inForce.Store(callers)
	return true, nil
}

// Collectors returns the metrics of the file.
func (b *Book) Collectors() []prometheus.Collector {
	return []prometheus.Collector{b.changes, b.callers}
}
