package policy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy/strictyaml"
)

func versionText(version int) string {
	return fmt.Sprintf(`
version: %d
regions: {eu: {weight: 1}}
limits: [{name: a, domain: api, key: [k], algorithm: fixed_window, limit: 1, window: 1m}]
`, version)
}

// write replaces the contents of a file in place.
func write(t *testing.T, path, text string) {
	t.Helper()
	suite.Must(t, os.WriteFile(path, []byte(text), 0o600))
}

// watching is a running Watch whose callbacks are sent to channels.
type watching struct {
	t       *testing.T
	applied chan int64 // versions
	reports chan error
	hup     chan os.Signal
}

// startWatch runs Watch on the real file system until the test ends.
func startWatch(t *testing.T, path string, current *Document) *watching {
	w := &watching{t: t, applied: make(chan int64, 100), reports: make(chan error, 100),
		hup: make(chan os.Signal)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- Watch(ctx, path, w.hup, current,
			func(d *Document) error { w.applied <- d.Version; return nil },
			func(err error) { w.reports <- err })
	}()
	t.Cleanup(func() {
		cancel()
		if err := receive(t, ended, "the end of Watch"); err != nil {
			t.Errorf("Watch returned %v after its context ended", err)
		}
	})
	return w
}

// receive waits for a value. The bound only ends a test that has failed.
func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(suite.Patience):
		t.Fatalf("no %s within %v", what, suite.Patience)
		panic("unreachable")
	}
}

func (w *watching) wantApplied(version int64) {
	w.t.Helper()
	if got := receive(w.t, w.applied, fmt.Sprintf("version %d", version)); got != version {
		w.t.Fatalf("applied version %d, want %d", got, version)
	}
}

// signal sends a signal and waits until it has been acted on: Watch takes the
// second one only when it is done with the first.
func (w *watching) signal() {
	w.hup <- os.Interrupt
	w.hup <- os.Interrupt
}

// TestWatchChanges replaces the file in the ways that editors, tools and
// operators do, and asks for each new version.
func TestWatchChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	write(t, path, versionText(1))
	w := startWatch(t, path, nil)
	w.wantApplied(1)

	write(t, path, versionText(2))
	w.wantApplied(2)

	write(t, path+".tmp", versionText(3))
	suite.Must(t, os.Rename(path+".tmp", path))
	w.wantApplied(3)

	suite.Must(t, os.Rename(path, path+"~")) // as editors that keep a backup do
	write(t, path, versionText(4))
	w.wantApplied(4)
}

func TestWatchReadsAtTheStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	write(t, path, versionText(1))
	current, err := Load(path)
	suite.Must(t, err)
	write(t, path, versionText(2)) // before Watch looks for changes
	startWatch(t, path, current).wantApplied(2)
}

// TestWatchKeepsTheLastGoodDocument breaks the file and mends it.
func TestWatchKeepsTheLastGoodDocument(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	write(t, path, versionText(1))
	w := startWatch(t, path, nil)
	w.wantApplied(1)

	write(t, path, strings.Replace(versionText(2), "window: 1m", "window: 1 m", 1))
	var errs strictyaml.Errors
	if err := receive(t, w.reports, "report"); !errors.As(err, &errs) ||
		!strings.Contains(err.Error(), "limits[0].window") {
		t.Fatalf("reported %v, want the invalid window", err)
	}
	write(t, path, versionText(3))
	w.wantApplied(3)

	suite.Must(t, os.Remove(path))
	for !errors.Is(receive(t, w.reports, "report"), os.ErrNotExist) {
		// The same invalid file may have been reported twice before.
	}
	write(t, path, versionText(4))
	w.wantApplied(4)
}

// TestWatchTellsThatTheFileIsMended: a file that was wrong, and has the same document as before again, is
// reported without an error, once.
func TestWatchTellsThatTheFileIsMended(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	write(t, path, versionText(1))
	w := startWatch(t, path, nil)
	w.wantApplied(1)
	write(t, path, "versoin: 1")
	if err := receive(t, w.reports, "report"); err == nil {
		t.Fatal("no error of a wrong file")
	}
	write(t, path, versionText(1))
	for receive(t, w.reports, "report") != nil {
		// The same invalid file may have been reported twice before.
	}
	w.signal()
	if len(w.applied) != 0 || len(w.reports) != 0 {
		t.Errorf("%d documents applied and %d reports more", len(w.applied), len(w.reports))
	}
}

// TestWatchAppliesADocumentOnce rewrites a document without changing its meaning, and checks by
// signal that it is read.
func TestWatchAppliesADocumentOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	write(t, path, versionText(1))
	w := startWatch(t, path, nil)
	w.wantApplied(1)
	write(t, path, "# a comment\n"+versionText(1))
	w.signal()
	if len(w.applied) != 0 || len(w.reports) != 0 {
		t.Errorf("%d documents applied and %d errors reported for a comment", len(w.applied),
			len(w.reports))
	}
}

// TestWatchConfigMap swaps a directory the way Kubernetes does: the file is a
// link through ..data, and ..data is replaced by a rename.
func TestWatchConfigMap(t *testing.T) {
	dir := t.TempDir()
	publish := func(version int) {
		name := fmt.Sprintf("..v%d", version)
		suite.Must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		write(t, filepath.Join(dir, name, "limits.yaml"), versionText(version))
		suite.Must(t, os.Symlink(name, filepath.Join(dir, "..data_tmp")))
		suite.Must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
		suite.Must(t, os.RemoveAll(filepath.Join(dir, fmt.Sprintf("..v%d", version-1))))
	}
	publish(1)
	path := filepath.Join(dir, "limits.yaml")
	suite.Must(t, os.Symlink(filepath.Join("..data", "limits.yaml"), path))
	w := startWatch(t, path, nil)
	for version := 1; version <= 4; version++ {
		w.wantApplied(int64(version))
		publish(version + 1)
	}
	w.wantApplied(5)
}

// TestWatchLinkElsewhere edits the file that a link leads to in another directory, then points the
// link to a third directory.
func TestWatchLinkElsewhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	one, two := filepath.Join(t.TempDir(), "one.yaml"), filepath.Join(t.TempDir(), "two.yaml")
	write(t, one, versionText(1))
	write(t, two, versionText(3))
	suite.Must(t, os.Symlink(one, path))
	w := startWatch(t, path, nil)
	w.wantApplied(1)
	write(t, one, versionText(2))
	w.wantApplied(2)
	suite.Must(t, os.Symlink(two, path+".tmp"))
	suite.Must(t, os.Rename(path+".tmp", path))
	w.wantApplied(3)
	write(t, two, versionText(4))
	w.wantApplied(4)
}

func TestWatchNeedsADirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "limits.yaml")
	err := Watch(t.Context(), path, nil, nil, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "put the directory back") {
		t.Errorf("got %v, want an error that names the directory", err)
	}
}

// noDirs stands in for the file system where a test sends the events itself.
type noDirs struct{}

func (noDirs) Add(string) error    { return nil }
func (noDirs) Remove(string) error { return nil }

// simulated is a watch under virtual time with events sent by the test.
type simulated struct {
	*watch
	events  chan fsnotify.Event
	errs    chan error
	hup     chan os.Signal
	started time.Time
	log     []string // what happened, and when
}

// simulate runs the test inside a bubble, with version 1 in force.
func simulate(t *testing.T, test func(t *testing.T, s *simulated)) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	write(t, path, versionText(1))
	bubble.Test(t, func(t *testing.T) {
		s := &simulated{
			events: make(chan fsnotify.Event), errs: make(chan error), hup: make(chan os.Signal),
			started: time.Now(),
		}
		s.watch = &watch{path: path, target: path, dirs: noDirs{},
			report: func(err error) { s.note("report %v", err) }}
		s.apply = func(d *Document) error { s.note("apply %d", d.Version); return nil }
		s.current = mustParse(t, versionText(1))
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go s.run(ctx, s.events, s.errs, s.hup)
		test(t, s)
	})
}

func (s *simulated) note(format string, args ...any) {
	s.log = append(s.log, fmt.Sprint(time.Since(s.started), " ", fmt.Sprintf(format, args...)))
}

func (s *simulated) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := strings.Join(s.log, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}

// TestWatchWaitsUntilAFileSettles sends the events of one file written in steps.
func TestWatchWaitsUntilAFileSettles(t *testing.T) {
	simulate(t, func(t *testing.T, s *simulated) {
		write(t, s.path, versionText(2))
		for range 5 {
			s.events <- fsnotify.Event{Name: s.path, Op: fsnotify.Write}
			time.Sleep(60 * time.Millisecond)
		}
		time.Sleep(time.Hour)
		s.want(t, "340ms apply 2") // 100 ms after the last event at 240 ms
	})
}

// TestWatchReadsAFileThatNeverSettles sends events without a pause.
func TestWatchReadsAFileThatNeverSettles(t *testing.T) {
	simulate(t, func(t *testing.T, s *simulated) {
		write(t, s.path, versionText(2))
		for time.Since(s.started) < 5*time.Second {
			s.events <- fsnotify.Event{Name: s.path, Op: fsnotify.Write}
			time.Sleep(50 * time.Millisecond)
		}
		s.want(t, "2s apply 2")
	})
}

// TestWatchIgnoresNeighbours: other files of the directory neither cause a reading nor delay one.
func TestWatchIgnoresNeighbours(t *testing.T) {
	simulate(t, func(t *testing.T, s *simulated) {
		write(t, s.path, versionText(2))
		neighbour := fsnotify.Event{Name: filepath.Join(filepath.Dir(s.path), "journal.db"),
			Op: fsnotify.Write}
		s.events <- neighbour
		time.Sleep(time.Hour)
		s.want(t)
		s.started = time.Now()
		s.events <- fsnotify.Event{Name: s.path, Op: fsnotify.Create}
		for range 4 {
			time.Sleep(30 * time.Millisecond)
			s.events <- neighbour
		}
		s.want(t, "100ms apply 2")
	})
}

func TestWatchSignals(t *testing.T) {
	simulate(t, func(t *testing.T, s *simulated) {
		write(t, s.path, versionText(2))
		s.hup <- os.Interrupt
		s.want(t, "0s apply 2")
		close(s.hup) // must not keep the loop busy
		time.Sleep(time.Second)
		write(t, s.path, versionText(3))
		s.events <- fsnotify.Event{Name: s.path, Op: fsnotify.Write}
		time.Sleep(time.Second)
		s.want(t, "0s apply 2", "1.1s apply 3")
	})
}

// TestWatchTriesARefusedDocumentAgain lets apply refuse a document at first.
func TestWatchTriesARefusedDocumentAgain(t *testing.T) {
	simulate(t, func(t *testing.T, s *simulated) {
		accept := s.apply
		s.apply = func(*Document) error { return errors.New("the version went back") }
		write(t, s.path, versionText(2))
		s.hup <- os.Interrupt
		synctest.Wait()
		if len(s.log) != 1 || !strings.Contains(s.log[0], "as epoch 2-") ||
			!strings.Contains(s.log[0], "the version went back") {
			t.Fatalf("got %q, want a report of the refusal", s.log)
		}
		s.log, s.apply = nil, accept
		s.hup <- os.Interrupt
		s.hup <- os.Interrupt
		s.want(t, "0s apply 2")
	})
}

// TestWatchReadsAfterLostEvents sends the error by which fsnotify says that its
// queue ran over.
func TestWatchReadsAfterLostEvents(t *testing.T) {
	simulate(t, func(t *testing.T, s *simulated) {
		write(t, s.path, versionText(2))
		s.errs <- fsnotify.ErrEventOverflow
		time.Sleep(time.Second)
		s.want(t, fmt.Sprintf("0s report watch %s: %v; the file is read again", s.path,
			fsnotify.ErrEventOverflow), "100ms apply 2")
	})
}
