// Package serving runs a node in this process, or checks whether it could.
//
// [Serve] puts a node together from its settings (assemble.go: sockets, certificates, journal,
// store, and a gate where cuts may be made), serves with it, follows the limits document and the
// gossip keys as they change, and ends it. [Check] reads all that Serve would read and starts
// nothing. Both say what the node is to be with a [Sheet].
package serving

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/nodeconfig"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region"
)

// runTwoThreads lets Go code run in two threads at a time, if GOMAXPROCS does not say otherwise: with one, which is what the
// runtime takes where a process may use one processor, a busy node looks for what has arrived only every 10 ms.
func runTwoThreads() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
	}
}

// startTimeout bounds the start of a node, of which opening the store is all that can take long.
const startTimeout = 30 * time.Second

// ballast is memory that is never used, so that the system never gives it. It counts as live for the garbage collector,
// which else would collect a small node's garbage every few milliseconds of a flood, and take time from its requests.
var ballast = make([]byte, 64<<20)

// Serve runs a node until ctx ends, or it fails. With again the settings are read once more.
func Serve(ctx context.Context, c *nodeconfig.Config, again func() (*nodeconfig.Config, error), stderr io.Writer) error {
	runTwoThreads()
	defer runtime.KeepAlive(ballast)
	hup, rekey := make(chan os.Signal, 1), make(chan os.Signal, 1)
	for _, ch := range []chan os.Signal{hup, rekey} {
		signal.Notify(ch, syscall.SIGHUP) // from the first moment on: a hang-up would end the process
		defer signal.Stop(ch)
	}

	document, err := policy.Load(c.Policy)
	if err != nil {
		return exit.Invalid(c.Policy, err)
	}
	if err := c.CheckRegion(document); err != nil {
		return exit.Usage(err)
	}
	log := newLog(stderr, c.LogLevel)
	p, err := assemble(ctx, c, document, log)
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
		return nil // asked to end before it had begun
	case err != nil:
		return fmt.Errorf("start node %s/%s: %w", c.Region, c.Node, err)
	}
	keys := newRekeying(node, c, again, log)
	stop := keys.follow(ctx, rekey)
	defer stop()
	return runNode(ctx, c, p, node, hup, log)
}
