// Package serving runs a node in this process, or checks whether it could run.
//
// [Serve] puts a node together from its settings (assemble.go: sockets, certificates, journal,
// store, and a gate if cuts are allowed). It serves with the node, follows changes of the limits
// document and the gossip keys, and ends the node. [Check] reads all that Serve would read and
// starts nothing. Both describe the node with a [Sheet].
package serving

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/serve/nodeconfig"
	"github.com/quotad/quotad/cmd/quotad/tuning"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region"
)

// startTimeout bounds the start of a node. Only opening the store can take long.
const startTimeout = 30 * time.Second

// Serve runs a node until ctx ends or the node fails. again reads the settings again.
func Serve(ctx context.Context, c *nodeconfig.Config, again func() (*nodeconfig.Config, error),
	stderr io.Writer) error {
	defer tuning.Tune()()
	hup, rekey := make(chan os.Signal, 1), make(chan os.Signal, 1)
	for _, ch := range []chan os.Signal{hup, rekey} {
		// This comes first, because until then a SIGHUP would end the process.
		signal.Notify(ch, syscall.SIGHUP)
		defer signal.Stop(ch)
	}

	document, err := policy.Load(c.Policy)
	if err != nil {
		return exit.Invalid(c.Policy, err)
	}
	if err := c.CheckRegion(document); err != nil {
		return exit.Usage(err)
	}
	log := newLog(stderr, c.LogLevel, c.Region, c.Node)
	p, err := assemble(ctx, c, document, stderr, log)
	if err != nil {
		return err
	}
	defer p.close()
	if err := summary(c, p).Print(stderr); err != nil {
		return err
	}
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	node, err := region.Start(starting, p.config)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil // ctx ended before the node had started
	case err != nil:
		return fmt.Errorf("start node %s/%s: %w", c.Region, c.Node, err)
	}
	keys := newRekeying(node, c, again, log)
	stop := keys.follow(ctx, rekey)
	defer stop()
	return runNode(ctx, c, p, node, hup, log)
}
