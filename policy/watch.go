package policy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settleTime is how long a file must have been unchanged before it is read. Editors and copies
	// write in several steps, and half a file is an error.
	settleTime = 100 * time.Millisecond
	// settleLimit is the longest wait for a file that keeps changing.
	settleLimit = 2 * time.Second
)

// Watch keeps the document in force up to date with the file at path, until ctx ends; it then
// returns nil. It returns an error only if it cannot start.
//
// Watch reads the file once at the start (it may have changed since current was loaded), whenever
// it changes, and on every receive from hup, which may be nil. If the document's epoch differs from
// that of the document in force, Watch calls apply with it. If apply returns nil, the document is
// in force. If the document is invalid, cannot be read or is refused by apply, the old one stays in
// force, Watch calls report with the error, and the next change or signal tries again. If the file
// then has the document again that was applied last, Watch calls report with nil. current may be nil if no
// document is in force yet.
//
// Watch notices changes in the directory of path and, if path is a symbolic link, in that of the
// file it leads to. So replacing the file by a rename works, as editors do, and so does replacing a
// link, as Kubernetes does with a ConfigMap. If the file system reports no changes (NFS, for
// example), send a signal through hup.
//
// Watch calls apply and report one at a time, from the calling goroutine.
func Watch(
	ctx context.Context,
	path string,
	hup <-chan os.Signal,
	current *Document,
	apply func(*Document) error,
	report func(error),
) error {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w; on Linux, raise fs.inotify.max_user_instances", path, err)
	}
	defer notify.Close()
	w := &watch{
		path:    filepath.Clean(path),
		dirs:    notify,
		current: current,
		apply:   apply,
		report:  report,
	}
	if err := w.follow(); err != nil {
		return err
	}
	w.read()
	w.run(ctx, notify.Events, notify.Errors, hup)
	return nil
}

// dirWatcher is the part of fsnotify.Watcher that selects the directories to watch.
type dirWatcher interface {
	Add(dir string) error
	Remove(dir string) error
}

// watch is the state of one call of Watch.
type watch struct {
	path    string
	target  string // the file that path leads to, itself if it is no link
	dirs    dirWatcher
	current *Document
	apply   func(*Document) error
	report  func(error)
	wrong   bool // the file, as it was read last, is not in force
}

// run reads the document again whenever it may have changed, until ctx ends.
func (w *watch) run(ctx context.Context, events <-chan fsnotify.Event, errs <-chan error,
	hup <-chan os.Signal) {
	settle := time.NewTimer(settleTime)
	settle.Stop()
	defer settle.Stop()
	var latest time.Time // latest time of the pending read; zero if none is pending
	changed := func() {
		if latest.IsZero() {
			latest = time.Now().Add(settleLimit)
		}
		settle.Reset(min(settleTime, time.Until(latest)))
	}
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-events:
			if w.concerns(event) {
				changed()
			}
		case err := <-errs:
			// Events may have been lost, so the file may have changed as well.
			w.report(fmt.Errorf("watch %s: %w; the file is read again", w.path, err))
			changed()
		case _, open := <-hup:
			if !open {
				hup = nil
				continue
			}
			w.reload()
		case <-settle.C:
			latest = time.Time{}
			w.reload()
		}
	}
}

// concerns reports whether an event in one of the directories may change what path reads as.
// Directories are often shared, and frequent changes to other files must not delay the reading.
func (w *watch) concerns(event fsnotify.Event) bool {
	switch filepath.Clean(event.Name) {
	case w.path, w.target, filepath.Dir(w.path):
		return true
	}
	return w.target != resolve(w.path)
}

// resolve follows links. It returns path itself if the links lead nowhere.
func resolve(path string) string {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return path
	}
	return target
}

// reload finds out which file path leads to now, and reads it.
func (w *watch) reload() {
	if err := w.follow(); err != nil {
		w.report(err)
	}
	w.read()
}

// follow watches the directory of the link and that of its target. Adding a directory again is
// harmless, and necessary if it was removed and created again.
func (w *watch) follow() error {
	home := filepath.Dir(w.path)
	old, target := w.target, resolve(w.path)
	w.target = target
	for _, dir := range []string{home, filepath.Dir(target)} {
		if err := w.dirs.Add(dir); err != nil {
			return fmt.Errorf("watch %s: directory %s: %w; put the directory back and send SIGHUP",
				w.path, dir, err)
		}
	}
	if dir := filepath.Dir(old); old != "" && dir != home && dir != filepath.Dir(target) {
		// The directory is often gone already, which ends its watch as well.
		if err := w.dirs.Remove(dir); err != nil && !errors.Is(err, fsnotify.ErrNonExistentWatch) {
			return fmt.Errorf("watch %s: stop watching %s: %w; harmless, changes are still noticed",
				w.path, dir, err)
		}
	}
	return nil
}

// read loads the document, and applies it if its epoch is a new one.
func (w *watch) read() {
	doc, err := Load(w.path)
	known := err == nil && w.current != nil && w.current.Epoch() == doc.Epoch()
	if err == nil && !known {
		if err = w.apply(doc); err != nil {
			err = fmt.Errorf("apply %s as epoch %s: %w", w.path, doc.Epoch(), err)
		} else {
			w.current = doc
		}
	}
	if err != nil || known && w.wrong {
		w.report(err)
	}
	w.wrong = err != nil
}
