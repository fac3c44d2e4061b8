package serving

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/quotad/quotad/cmd/quotad/build"
	"github.com/quotad/quotad/cmd/quotad/serve/nodeconfig"
	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/front/api"
	"github.com/quotad/quotad/region/front/tracing"
)

// runNode serves with a started node until ctx ends or something fails, and then ends the node.
func runNode(ctx context.Context, c *nodeconfig.Config, p *parts, node *region.Node,
	hup <-chan os.Signal, log *slog.Logger) error {
	p.doors.register(node.Metrics())
	p.protection.register(node.Metrics())
	node.Metrics().MustRegister(buildInfo(build.This()))
	p.protection.began(c, p.config.Policy, node.TakenBack())
	options := p.protection.options(c)
	if p.tracer != nil {
		options.Callers.Traces = p.tracer
		node.Metrics().MustRegister(p.tracer.Collectors()...)
	}
	if p.gate != nil {
		options.Operators.Cutter = newCutter(c.Region, p.gate, node.NodeAddresses, log)
	}
	server := api.New(node, log, options)
	running, fail := context.WithCancelCause(ctx)
	var tasks sync.WaitGroup
	start := func(task func() error) {
		tasks.Go(func() {
			if err := task(); err != nil {
				fail(err)
			}
		})
	}
	start(func() error { return server.Callers.ServeGRPC(p.doors.grpc.Listener(p.sockets.grpc)) })
	start(func() error { return server.Callers.ServeHTTP(p.doors.http.Listener(p.sockets.http)) })
	start(func() error { return server.Operators.Serve(p.doors.admin.Listener(p.sockets.admin)) })
	if book := p.protection.roles; book != nil {
		tasks.Go(func() { book.Follow(running) })
	}
	r := newReload(node, c.Policy, p.config.Policy, p.protection.audit, log)
	start(func() error { return r.watch(running, c.Policy, hup) })
	log.Info("serving", "http", listening(p.sockets.http).String(), "grpc",
		listening(p.sockets.grpc).String(), "admin", listening(p.sockets.admin).String())
	if why := node.Ready(); why != nil {
		log.Warn("the node serves and is not ready", "why", why.Error())
	}

	<-running.Done()
	var failure error
	if ctx.Err() == nil { // the end was not asked for
		failure = context.Cause(running)
	}
	stopNode(server, node, p.tracer, c.DrainTimeout, log)
	tasks.Wait()
	fail(nil)
	if err := errors.Join(failure, node.Close()); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

// leaveTimeout bounds the work after the last request: the store is charged with what was admitted
// without it, and the other nodes are told that this one ends (they would also find out by
// themselves).
const leaveTimeout = 5 * time.Second

// stopNode looks not ready at once, answers the requests under way, and drains the node. If
// requests had to be cut off, no other node could be told, or spans were left, it logs that. It is
// not a failure, because the node ends in any case.
func stopNode(server *api.Server, node *region.Node, tracer *tracing.Tracer, drain time.Duration,
	log *slog.Logger) {
	log.Info("stopping: requests under way are answered", "drain_timeout", show.Span(drain))
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		log.Warn("not all requests were answered", "err", err)
	}
	var sent sync.WaitGroup
	defer sent.Wait()
	sent.Go(func() { // in what is left of drain
		if err := tracer.Close(ctx); err != nil {
			log.Warn("not all traces were sent", "err", err)
		}
	})
	leaving, stop := context.WithTimeout(context.Background(), leaveTimeout)
	defer stop()
	if err := node.Drain(leaving); err != nil {
		log.Warn("the node ended before it told all others, or before its Redis had counted all it admitted", "err", err)
	}
}
