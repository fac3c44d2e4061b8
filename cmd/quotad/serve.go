package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/nodeconfig"
	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region"
)

func serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve [--config node.yaml]",
		Short: "Run a node of a region",
		Long: `serve runs one node: it decides requests over gRPC and HTTP with its region's Redis, and trades rights with the
other regions. Every setting can be given in the node file, as a variable QUOTAD_* of the environment, or as a flag;
flags go before variables, variables before the file. Required are region, policy, data_dir and redis.

A node file, with the defaults of listen:

  region: us-east
  node: n1                    # unique in its region; default: the host name
  nodes: 1                    # how many nodes the region has
  data_dir: /var/lib/quotad   # the journal goes there
  policy: limits.yaml         # paths are relative to this file
  redis: {url: "redis://127.0.0.1:6379/0"}
  listen: {grpc: "127.0.0.1:8081", http: "127.0.0.1:8080", peer: "127.0.0.1:8082", gossip: "127.0.0.1:7946"}
  advertise: {peer: "us.example.com:8082", gossip: "192.0.2.7:7946"}
  seeds: ["eu.example.com:7946"]
  peer_tls: {cert: n1.pem, key: n1.key, ca: ca.pem}   # see quotad certs; of the certificate: quotad://us-east/n1
  gossip_keys: [file:gossip.key]                      # the first encrypts, all decrypt
  bootstrap: false

The limits document is read again when it changes and on SIGHUP; while it is invalid the last good one stays in force.
On SIGHUP gossip_keys are read again, too: to change a key, give all nodes [old, new], then [new, old], then [new]. The
files of peer_tls are read again when they change. All else is read once.
SIGTERM and SIGINT end the node once the requests under way are answered.`,
		Args: noArguments,
	}
	settings := settingFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := settings.Read()
		if err != nil {
			return exit.Usage(err)
		}
		runTwoThreads()
		return serve(cmd.Context(), c, settings.Read, cmd.ErrOrStderr())
	}
	return cmd
}

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

// serve runs a node until ctx ends, or it fails. With again the settings are read once more.
func serve(ctx context.Context, c *nodeconfig.Config, again func() (*nodeconfig.Config, error), stderr io.Writer) error {
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
	if err := summary(c, p).print(stderr); err != nil {
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

// mostLogged bounds a text in the log; stacks are longer than anything else.
const mostLogged = 16 << 10

// logged makes a text fit for a log that somebody reads on a terminal: names of others are in it. The handlers escape lines
// and quotes themselves, but not all that a terminal obeys.
func logged(_ []string, a slog.Attr) slog.Attr {
	var text string
	switch err, failed := a.Value.Any().(error); {
	case a.Value.Kind() == slog.KindString:
		text = a.Value.String()
	case failed:
		text = err.Error()
	default:
		return a
	}
	if len(text) > mostLogged {
		text = strings.ToValidUTF8(text[:mostLogged], "") + "..."
	}
	var b strings.Builder
	for _, c := range text {
		if strconv.IsPrint(c) || c == '\n' || c == '\t' {
			b.WriteRune(c)
		} else {
			fmt.Fprintf(&b, "\\u%04x", c)
		}
	}
	return slog.String(a.Key, b.String())
}

// newLog writes text to a terminal and JSON to everything else.
func newLog(w io.Writer, level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: logged}
	if show.IsTerminal(w) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}
