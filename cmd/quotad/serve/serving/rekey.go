package serving

import (
	"context"
	"log/slog"
	"os"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotad/quotad/cmd/quotad/serve/nodeconfig"
	"github.com/quotad/quotad/region"
)

// rekeying puts new gossip keys in force while a node serves.
type rekeying struct {
	node      *region.Node
	encrypted bool                               // the node was started with keys
	again     func() (*nodeconfig.Config, error) // reads the settings again
	log       *slog.Logger
	refusals  prometheus.Counter
	inForce   prometheus.Gauge
}

// newRekeying returns the rekeying of a node. Its metrics join the node's.
func newRekeying(node *region.Node, c *nodeconfig.Config, again func() (*nodeconfig.Config, error),
	log *slog.Logger) *rekeying {
	r := &rekeying{node: node, encrypted: c.GossipKeys != nil, again: again, log: log,
		refusals: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_gossip_keys_refused_total",
			Help: "Readings of gossip_keys that could not be put in force; the last good ones stayed."}),
		inForce: prometheus.NewGauge(prometheus.GaugeOpts{Name: "quotad_gossip_keys",
			Help: "Gossip keys in force; 0: plain text."})}
	r.inForce.Set(float64(len(c.GossipKeys)))
	node.Metrics().MustRegister(r.refusals, r.inForce)
	return r
}

// follow reads the keys again at each signal, until ctx ends or stop is called. stop waits for the
// end.
func (r *rekeying) follow(ctx context.Context, signals <-chan os.Signal) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-signals:
				r.change()
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}

// change puts the keys in force that the settings name now. If the node was started without keys
// and has none now, it does nothing.
func (r *rekeying) change() {
	c, err := r.again()
	if err == nil {
		if c.GossipKeys == nil && !r.encrypted {
			return
		}
		err = r.node.SetGossipKeys(c.GossipKeys)
	}
	if err != nil {
		r.refusals.Inc()
		r.log.Error("gossip_keys were not put in force; the last good ones stay", "err", err)
		return
	}
	r.inForce.Set(float64(len(c.GossipKeys)))
	r.log.Info("gossip keys in force", "keys", len(c.GossipKeys))
}
