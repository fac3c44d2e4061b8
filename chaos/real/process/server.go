package process

import (
	"context"
	"net"
)

// StartServer starts any program that serves TCP at an address that its arguments or files tell it,
// and waits until it takes connections there. name is for errors, dir its working directory. The
// program ends with the scope.
func StartServer(ctx context.Context, scope Scope, name, dir, address, path string,
	args ...string) (*Process, error) {
	p := &Process{name: name, dir: dir}
	scope.Cleanup(p.Kill)
	if err := p.start(path, args...); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return p, p.await(ctx, "serving", func(ctx context.Context) error {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return c.Close()
	})
}

// Dir returns its working directory.
func (p *Process) Dir() string { return p.dir }
