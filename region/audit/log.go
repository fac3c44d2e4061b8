package audit

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotad/quotad/region/door"
)

const (
	// maxFile is the size from which the file is set aside and another one is begun. keptFiles is
	// how many older ones are kept, as PATH.1 (the latest) and so on, so the disk is bounded.
	maxFile   = 64 << 20
	keptFiles = 3
)

// Log is the audit log of a node. Safe for concurrent use. A nil Log writes nothing.
type Log struct {
	node string
	log  *slog.Logger // says that the audit log cannot be written
	now  func() time.Time

	mu    sync.Mutex
	to    io.Writer
	file  *os.File // nil: to is another stream
	size  int64
	most  int64 // of a file
	quiet door.Seldom

	acts   *prometheus.CounterVec
	failed prometheus.Counter
}

// New returns a log that writes to a stream, for the node region/node. log is the ordinary log.
func New(to io.Writer, node string, log *slog.Logger) *Log {
	return &Log{node: node, log: log, now: time.Now, to: to, most: maxFile,
		acts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "quotad_audited_total",
			Help: "Acts that can exceed or cut a limit, which the audit log has, by act and outcome."},
			[]string{"act", "outcome"}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{Name: "quotad_audit_failed_total",
			Help: "Acts that the audit log could not take."})}
}

// Open returns a log that writes to a file, which it makes if it is missing and otherwise goes on
// with. Only the user that quotad runs as may read it.
func Open(path, node string, log *slog.Logger) (*Log, error) {
	l := New(nil, node, log)
	if err := l.begin(path); err != nil {
		return nil, fmt.Errorf("open the audit log: %w; choose another path, or let the user "+
			"quotad runs as write there", err)
	}
	return l, nil
}

// begin opens the file to write to.
func (l *Log) begin(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return fmt.Errorf("%s is not a regular file", path)
	}
	l.file, l.to, l.size = f, f, info.Size()
	return nil
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
	err := l.setAside(len(text))
	if err == nil {
		_, err = l.to.Write(text)
		l.size += int64(len(text))
	}
	if err == nil {
		return
	}
	l.failed.Inc()
	if unlogged, due := l.quiet.Due(l.now()); due {
		l.log.Error("an act is missing in the audit log; make room for it", "act", e.Act,
			"outcome", e.Outcome, "err", err, "unlogged", unlogged)
	}
}

// setAside begins another file if the present one has no room for so many bytes more.
func (l *Log) setAside(more int) error {
	if l.file == nil || l.size+int64(more) <= l.most {
		return nil
	}
	path := l.file.Name()
	for n := keptFiles; n > 0; n-- {
		from := path
		if n > 1 {
			from += "." + strconv.Itoa(n-1)
		}
		if err := os.Rename(from, path+"."+strconv.Itoa(n)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	old := l.file
	if err := l.begin(path); err != nil {
		return err
	}
	return old.Close()
}

// Close closes the file.
func (l *Log) Close() error {
	if l == nil || l.file == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}

// Describe implements prometheus.Collector.
func (l *Log) Describe(ch chan<- *prometheus.Desc) {
	l.acts.Describe(ch)
	l.failed.Describe(ch)
}

// Collect implements prometheus.Collector.
func (l *Log) Collect(ch chan<- prometheus.Metric) {
	l.acts.Collect(ch)
	l.failed.Collect(ch)
}
