package process

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
)

// Program is any program that serves at an address of its own choice, which it prints as its first
// line. Safe for concurrent use.
type Program struct {
	Process
	Address string // host:port
}

// errNoLine says that a program has not printed its address yet.
var errNoLine = errors.New("it has not printed its address")

// StartProgram starts a program and waits until it prints the address at which it serves. name is
// for errors. The program ends with the scope.
func StartProgram(ctx context.Context, scope Scope, name, path string,
	args ...string) (*Program, error) {
	p := &Program{}
	p.name, p.dir = name, scope.TempDir()
	scope.Cleanup(p.Kill)
	first := &firstLine{}
	p.stdout = first
	if err := p.start(path, args...); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err := p.await(ctx, "serving", func(context.Context) error {
		var whole bool
		if p.Address, whole = first.text(); !whole {
			return errNoLine
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// maxFirstLine bounds the bytes that are kept of the line.
const maxFirstLine = 256

// firstLine keeps the first line of what is written to it. Safe for concurrent use.
type firstLine struct {
	mu    sync.Mutex
	bytes []byte
}

// Write implements io.Writer.
func (f *firstLine) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if bytes.IndexByte(f.bytes, '\n') < 0 {
		f.bytes = append(f.bytes, b[:min(len(b), maxFirstLine-len(f.bytes))]...)
	}
	return len(b), nil
}

// text returns the line, and whether all of it was written.
func (f *firstLine) text() (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	line, _, whole := strings.Cut(string(f.bytes), "\n")
	return line, whole
}
