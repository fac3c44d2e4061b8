package process

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Ground is a [Scope] for a command, which has no *testing.T. Safe for concurrent use.
type Ground struct {
	mu   sync.Mutex
	dir  string
	last int
	ends []func()
}

// NewGround makes the folder that contains all other folders of the scope. Close removes it.
func NewGround() (*Ground, error) {
	dir, err := os.MkdirTemp("", "quotad-chaos-")
	if err != nil {
		return nil, fmt.Errorf(
			"make a folder for the processes: %w; set TMPDIR to one that can be written", err)
	}
	return &Ground{dir: dir}, nil
}

// Cleanup implements Scope: the last registered function is called first.
func (g *Ground) Cleanup(end func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ends = append(g.ends, end)
}

// TempDir implements Scope.
func (g *Ground) TempDir() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last++
	dir := filepath.Join(g.dir, fmt.Sprint(g.last))
	_ = os.Mkdir(dir, 0o755) // if this fails, writing to the folder fails as well
	return dir
}

// Close calls the cleanups and removes all folders of the scope.
func (g *Ground) Close() error {
	g.mu.Lock()
	ends := g.ends
	g.ends = nil
	g.mu.Unlock()
	for i := len(ends) - 1; i >= 0; i-- {
		ends[i]()
	}
	return os.RemoveAll(g.dir)
}
