package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Scope is what processes live in; *testing.T is one. TempDir returns a new
// folder each time, which is removed with the scope.
type Scope interface {
	Cleanup(func())
	TempDir() string
}

// Process is one process, which may be started again after it has ended. Safe
// for concurrent use.
type Process struct {
	name string
	dir  string

	mu     sync.Mutex
	cmd    *exec.Cmd     // the last one started
	exited chan struct{} // closed when it has ended
	starts int
	env    []string
	output tail
}

// ErrNotRunning says that there is no process to signal.
var ErrNotRunning = errors.New("the process does not run")

// SetEnv adds NAME=VALUE to the environment of all later starts, in place of
// what it added before.
func (p *Process) SetEnv(all ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.env = all
}

// start starts the command; the one before must have ended.
func (p *Process) start(path string, args ...string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running() {
		return fmt.Errorf("start %s: it runs already: end it first", p.name)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, &p.output, &p.output
	cmd.Env = append(os.Environ(), p.env...)
	cmd.WaitDelay = time.Second
	dieWithParent(cmd)
	started, exited := make(chan error), make(chan struct{})
	go func() {
		// The system ends the child with the thread that started it, not with the
		// process, so that thread is kept.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(exited)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is seen in its output
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.cmd, p.exited = cmd, exited
	p.starts++
	return nil
}

// running is Running with the lock held.
func (p *Process) running() bool {
	if p.exited == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Running says whether the process has been started and has not ended. One
// that is paused runs.
func (p *Process) Running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running()
}

// End kills the process at once, and fails if it had ended before, by itself.
func (p *Process) End() error {
	running := p.Running()
	if p.Kill(); !running || !p.Killed() {
		return fmt.Errorf("kill %s: %w: it had ended by itself\n%s", p.name, ErrNotRunning, p.Output())
	}
	return nil
}

// Killed says whether the process that was started last has ended by SIGKILL,
// whoever sent it.
func (p *Process) Killed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil || p.running() {
		return false
	}
	s, known := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return known && s.Signaled() && s.Signal() == syscall.SIGKILL
}

// Starts is how often the process was started.
func (p *Process) Starts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.starts
}

// Exited is closed when the process that was started last has ended; it is nil,
// and so never closed, before the first start.
func (p *Process) Exited() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exited
}

// Output is the end of what the process wrote, over all its starts, at most 64
// KiB.
func (p *Process) Output() string { return p.output.String() }

// Signal sends a signal, or fails with ErrNotRunning.
func (p *Process) Signal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return fmt.Errorf("send %s %v: %w", p.name, s, ErrNotRunning)
	}
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("send %s %v: %w", p.name, s, err)
	}
	return nil
}

// Pause stops the process where it stands (SIGSTOP), as a machine does that is
// suspended.
func (p *Process) Pause() error { return p.Signal(syscall.SIGSTOP) }

// Resume lets a paused process go on (SIGCONT).
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// Kill ends the process at once (SIGKILL) and waits until it has ended. One
// that does not run is left alone.
func (p *Process) Kill() {
	if err := p.Signal(syscall.SIGKILL); err == nil {
		<-p.Exited()
	}
}

// Terminate asks the process to end (SIGTERM), also if it is paused, and waits
// until it has. If ctx ends first it is killed, which is an error, as is an end
// with another exit code than 0.
func (p *Process) Terminate(ctx context.Context) error {
	if err := errors.Join(p.Signal(syscall.SIGTERM), p.Signal(syscall.SIGCONT)); err != nil {
		if !p.Running() {
			return nil
		}
		return err
	}
	select {
	case <-p.Exited():
		return p.orderly()
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("%s did not end when it was asked to and was killed: %w\n%s", p.name, ctx.Err(), p.Output())
	}
}

// orderly says how the process that was started last ended, or nil if its exit
// code was 0.
func (p *Process) orderly() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.cmd.ProcessState; !s.Success() {
		return fmt.Errorf("%s was asked to end and did so with %s\n%s", p.name, s, p.output.String())
	}
	return nil
}

// await asks again and again until there is no error, the process ends, or ctx
// does.
func (p *Process) await(ctx context.Context, what string, try func(context.Context) error) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	exited := p.Exited()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-exited:
			return fmt.Errorf("%s ended before it was %s\n%s", p.name, what, p.Output())
		case <-ctx.Done():
			return fmt.Errorf("%s is not %s: %w (%w)\n%s", p.name, what, err, ctx.Err(), p.Output())
		}
	}
}

// mostOutput bounds what is kept of a process's output, in bytes.
const mostOutput = 64 << 10

// tail keeps the end of what is written to it. Safe for concurrent use.
type tail struct {
	mu    sync.Mutex
	bytes []byte
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes = append(t.bytes, b...)
	if len(t.bytes) > 2*mostOutput { // moving rarely keeps the copying proportional to what is written
		t.bytes = append([]byte(nil), t.bytes[len(t.bytes)-mostOutput:]...)
	}
	return len(b), nil
}

// String returns the end of what was written.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.bytes[max(0, len(t.bytes)-mostOutput):])
}
