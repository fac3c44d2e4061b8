package audit

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotad/quotad/region/base/door"
)

// callersSuffix is the ending of the file with the acts of callers: receipts settled and units given back.
// They may be many, and must not have others set aside.
const callersSuffix = ".callers"

// Log is the audit log of a node. Safe for concurrent use. A nil Log writes nothing.
type Log struct {
	node string
	log  *slog.Logger // says that the audit log cannot be written
	now  func() time.Time

	mu                 sync.Mutex
	operators, callers *stream
	quiet              door.Seldom

	acts   *prometheus.CounterVec
	failed prometheus.Counter
}

// New returns a log that writes to one stream, for the node region/node. log is the ordinary log.
func New(to io.Writer, node string, log *slog.Logger) *Log {
	one := &stream{to: to}
	return &Log{node: node, log: log, now: time.Now, operators: one, callers: one,
		acts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "quotad_audited_total",
			Help: "Acts that can exceed or cut a limit, which the audit log has, by act and outcome."},
			[]string{"act", "outcome"}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{Name: "quotad_audit_failed_total",
			Help: "Acts that the audit log could not take."})}
}

// Open returns a log that writes to a file, and the acts of callers to another beside it. It makes
// them if they are missing, and otherwise goes on with them. Only the user that quotad runs as may
// read them.
func Open(path, node string, log *slog.Logger) (*Log, error) {
	l := New(nil, node, log)
	l.operators, l.callers = &stream{most: maxFile}, &stream{most: maxFile}
	err := l.operators.begin(path)
	if err == nil {
		err = l.callers.begin(path + callersSuffix)
	}
	if err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("open the audit log: %w; choose another path, or let the user "+
			"quotad runs as write there", err)
	}
	return l, nil
}

// Write writes an act down. If that fails, it is counted and said in the ordinary log: the act has
// happened.
func (l *Log) Write(e Event) {
	if l == nil {
		return
	}
	l.acts.WithLabelValues(string(e.Act), e.Outcome).Inc()
	text := encode(l.now(), l.node, e)
	l.mu.Lock()
	defer l.mu.Unlock()
	to := l.operators
	if e.Act == Settle || e.Act == GiveBack {
		to = l.callers
	}
	err := to.write(text)
	if err == nil {
		return
	}
	l.failed.Inc()
	if unlogged, due := l.quiet.Due(l.now()); due {
		l.log.Error("an act is missing in the audit log; make room for it", "act", e.Act,
			"outcome", e.Outcome, "err", err, "unlogged", unlogged)
	}
}

// Close closes the files.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.operators.close(), l.callers.close())
}

// Collectors returns the metrics of the log.
func (l *Log) Collectors() []prometheus.Collector {
	return []prometheus.Collector{l.acts, l.failed}
}
