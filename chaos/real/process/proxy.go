package process

import (
	"io"
	"net"
	"sync"
)

// Proxy stands between a node and its Redis, so that the connection can be cut for that node alone,
// or lead to another Redis. Safe for concurrent use.
type Proxy struct {
	// URL is the address for the node file.
	URL string

	listener net.Listener
	work     sync.WaitGroup

	mu     sync.Mutex
	to     string // host:port; empty: no connection is passed on
	closed bool
	open   map[net.Conn]struct{}
}

// StartProxy starts a proxy that leads to the address to, host:port.
func StartProxy(scope Scope, to string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{URL: "redis://" + l.Addr().String() + "/0", listener: l, to: to,
		open: map[net.Conn]struct{}{}}
	p.work.Go(p.serve)
	scope.Cleanup(p.end)
	return p, nil
}

// Lead breaks all connections, and leads new ones to another address. If that is empty, new
// connections are closed as soon as they are made.
func (p *Proxy) Lead(to string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to = to
	for c := range p.open {
		_ = c.Close() // it may be closed already
	}
	clear(p.open)
}

// end closes everything that the proxy holds.
func (p *Proxy) end() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.Lead("")
	p.work.Wait()
}

func (p *Proxy) serve() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return // the proxy was closed
		}
		p.work.Go(func() { p.join(c) })
	}
}

// join carries bytes both ways until one side ends or the connection is cut.
func (p *Proxy) join(from net.Conn) {
	defer from.Close()
	p.mu.Lock()
	to := p.to
	p.mu.Unlock()
	if to == "" {
		return
	}
	there, err := net.Dial("tcp", to)
	if err != nil {
		return // the node finds its connection closed, as it would without a proxy
	}
	defer there.Close()
	if !p.hold(to, from, there) {
		return
	}
	defer p.drop(from, there)
	var both sync.WaitGroup
	carry := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // the connection is over, however it ended
		_ = to.Close()
		_ = from.Close()
	}
	both.Go(func() { carry(there, from) })
	carry(from, there)
	both.Wait()
}

// hold records connections, which a cut is to break. It returns false if the proxy no longer leads
// to to.
func (p *Proxy) hold(to string, both ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.to != to {
		return false
	}
	for _, c := range both {
		p.open[c] = struct{}{}
	}
	return true
}

func (p *Proxy) drop(both ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range both {
		delete(p.open, c)
	}
}
