package dev

import (
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/quotad/quotad/chaos/play/world"
	"github.com/quotad/quotad/region/base/door"
	"github.com/quotad/quotad/region/base/ratelimit"
	"github.com/quotad/quotad/region/front/api"
	"github.com/quotad/quotad/region/front/callers"
	"github.com/quotad/quotad/region/front/operators"
)

// ports are a region's listeners and its server.
type ports struct {
	region            string
	http, grpc, admin net.Listener
	server            *api.Server
}

// A region's listeners, from its first port on, as the usual ports lie.
const (
	grpcAfter   = 1
	adminAfter  = 3
	regionAfter = 100
)

// maxConnections bounds the open connections of one port. Further ones are closed.
const maxConnections = 256

// allPorts are the ports of all regions, in the order of the limits document.
type allPorts []*ports

// open opens the listeners of all regions, or none.
func open(o Options) (all allPorts, err error) {
	defer func() {
		if err != nil {
			all.close()
		}
	}()
	for i, r := range o.Document.Regions {
		p := &ports{region: r.Name}
		all = append(all, p)
		first := o.Port + i*regionAfter
		for _, one := range []struct {
			after int
			l     *net.Listener
		}{{0, &p.http}, {grpcAfter, &p.grpc}, {adminAfter, &p.admin}} {
			port := first + one.after
			if o.Port == 0 {
				port = 0
			}
			if *one.l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err != nil {
				return all, fmt.Errorf("%w; stop what uses the port, or choose others with --port", err)
			}
		}
	}
	return all, nil
}

// serve makes the server of a region's node.
func (p *ports) serve(w *world.World, o Options, console string, play *play) {
	node := w.Node(p.region)
	p.server = api.New(node, o.Log, api.Options{
		Callers:   callers.Options{Headers: callers.BothHeaders, MaxRate: ratelimit.DefaultMaxRate, Console: console},
		Operators: operators.Options{Cutter: cutter{w.Network, p.region, o.Document}, Rehearsal: play}})
	limits := door.Limits{Connections: maxConnections, PerAddress: maxConnections}
	for name, l := range map[string]*net.Listener{"http": &p.http, "grpc": &p.grpc, "admin": &p.admin} {
		d := door.New(name, limits)
		node.Metrics().MustRegister(d)
		*l = d.Listener(*l)
	}
}

// start serves on all listeners.
func (p *ports) start(tasks *sync.WaitGroup, fail func(error)) {
	for l, serve := range map[net.Listener]func(net.Listener) error{p.http: p.server.Callers.ServeHTTP,
		p.grpc: p.server.Callers.ServeGRPC, p.admin: p.server.Operators.Serve} {
		tasks.Go(func() {
			if err := serve(l); err != nil {
				fail(err)
			}
		})
	}
}

// close closes the listeners that are open. Closing one that its server has closed does nothing.
func (all allPorts) close() {
	var err error
	for _, p := range all {
		for _, l := range []net.Listener{p.http, p.grpc, p.admin} {
			if l != nil {
				err = errors.Join(err, l.Close())
			}
		}
	}
	_ = err // a listener that is closed already
}

// consoleAddress is where a browser finds the console.
func (p *ports) consoleAddress() string { return "http://" + address(p.admin) + "/" }

// address returns a listener's address as people type it.
func address(l net.Listener) string {
	return fmt.Sprintf("localhost:%d", l.Addr().(*net.TCPAddr).Port)
}
