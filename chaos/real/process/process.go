package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Scope is the lifetime of processes; *testing.T is one. TempDir returns a new folder each time.
// The scope removes these folders when it ends.
type Scope interface {
	Cleanup(func())
	TempDir() string
}

// Process is one process, which may be started again after it has ended. Safe for concurrent use.
type Process struct {
	name string
	dir  string

	mu     sync.Mutex
	cmd    *exec.Cmd     // the last one started
	exited chan struct{} // closed when cmd has ended
	starts int
	env    []string
	output tail
	stdout io.Writer // of a Program; nil: output
}

// ErrNotRunning says that there is no process to signal.
var ErrNotRunning = errors.New("the process does not run")

// SetEnv adds NAME=VALUE pairs to the environment of all later starts. They replace those of
// earlier calls.
func (p *Process) SetEnv(all ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.env = all
}

// start starts the command. The previous one must have ended.
func (p *Process) start(path string, args ...string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running() {
		return fmt.Errorf("start %s: it runs already: end it first", p.name)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, &p.output, &p.output
	if p.stdout != nil {
		cmd.Stdout = p.stdout
	}
	cmd.Env = append(os.Environ(), p.env...)
	cmd.WaitDelay = time.Second
	dieWithParent(cmd)
	started, exited := make(chan error), make(chan struct{})
	go func() {
		// The system kills the child when the thread that started it ends, not when the process
		// does. Therefore this goroutine keeps its thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(exited)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the output shows how it ended
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.cmd, p.exited = cmd, exited
	p.starts++
	return nil
}

// running is Running for callers that hold the lock.
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

// Running reports whether the process has been started and has not ended. A paused process runs.
func (p *Process) Running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running()
}

// End kills the process at once. It fails if the process had already ended by itself.
func (p *Process) End() error {
	running := p.Running()
	if p.Kill(); !running || !p.Killed() {
		return fmt.Errorf("kill %s: %w: it had ended by itself\n%s", p.name, ErrNotRunning,
			p.Output())
	}
	return nil
}

// Killed reports whether the last started process was ended by SIGKILL, whoever sent it.
func (p *Process) Killed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil || p.running() {
		return false
	}
	s, known := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return known && s.Signaled() && s.Signal() == syscall.SIGKILL
}

// Starts returns how often the process was started.
func (p *Process) Starts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.starts
}

// PID returns the process ID of the last started process, 0 before the first start.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// Exited returns a channel that is closed when the last started process has ended. Before the first
// start it is nil, and so never closed.
func (p *Process) Exited() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exited
}

// Output returns the last 64 KiB that the process wrote, over all its starts.
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

// Pause stops the process (SIGSTOP), like a machine that is suspended.
func (p *Process) Pause() error { return p.Signal(syscall.SIGSTOP) }

// Resume continues a paused process (SIGCONT).
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// Kill ends the process at once (SIGKILL) and waits until it has ended. It does nothing if the
// process does not run.
func (p *Process) Kill() {
	if err := p.Signal(syscall.SIGKILL); err == nil {
		<-p.Exited()
	}
}

// Terminate asks the process to end (SIGTERM), even if it is paused, and waits until it has ended.
// If ctx ends first, Terminate kills the process and returns an error. Another exit code than 0 is
// also an error.
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
		return fmt.Errorf("%s did not end when it was asked to and was killed: %w\n%s", p.name,
			ctx.Err(), p.Output())
	}
}

// orderly returns nil if the last started process ended with exit code 0, and otherwise how it
// ended.
func (p *Process) orderly() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.cmd.ProcessState; !s.Success() {
		return fmt.Errorf("%s was asked to end and did so with %s\n%s", p.name, s,
			p.output.String())
	}
	return nil
}

// await calls try until it returns no error, the process ends, or ctx does.
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

// maxOutput is the maximum number of bytes kept of a process's output.
const maxOutput = 64 << 10

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
	// Moving rarely keeps the copying proportional to what is written.
	if len(t.bytes) > 2*maxOutput {
		t.bytes = append([]byte(nil), t.bytes[len(t.bytes)-maxOutput:]...)
	}
	return len(b), nil
}

// String returns the end of what was written.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.bytes[max(0, len(t.bytes)-maxOutput):])
}
