// Bench measures what a decision costs, as quotad bench does, and varies what those need who work on
// quotad: the algorithm and consistency of the limit, a node that runs already, another server
// beside it. Run it in the module: go run ./chaos/bench --help
//
// Exit codes: 0 measured, 1 it could not be measured, or more than 1 % of a server's requests failed
// or were denied, 2 bad usage.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/quotad/quotad/chaos/real/bench"
	"github.com/quotad/quotad/chaos/real/process"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

const help = `go run ./chaos/bench measures as quotad bench does, whose help says what the columns are.

With --limits each request meets so many limits of the node: up to 11 of fixed_window or
token_bucket, 5 of leaky_bucket, 3 of sliding_window_counter, 2 of sliding_window_log. With
--consistency prefetch the node holds units of keys that are asked for 80 times a second or more,
and decides the others exactly: use few keys.

With --grpc a node that runs already takes the place of the first server, and --pid names the
processes whose processor time is counted: those named redis-server or valkey-server as its Redis, all others as
the server. The load is real. The node's document needs a limit that admits it all:

  - {name: bench, domain: bench, key: [key], algorithm: fixed_window, limit: 1000000000, window: 1h}

With --compare a server of envoy.service.ratelimit.v3.RateLimitService that runs already is
measured, too, as "compared". A decision there is a descriptor, or with --limits one for each of
them, with the values KEY, KEY/2, ...; with --batch they are all in one call. --compare-pid counts
for it as --pid does for the node. A configuration of envoyproxy/ratelimit:

  domain: bench
  descriptors:
    - {key: key, rate_limit: {unit: hour, requests_per_unit: 1000000000}}

-o json also has driven (with --grpc), compared and compared_tells_limit (with --compare).

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run measures as the arguments say, and returns the exit code.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	b, output, err := parse(args, out)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(errs, err)
		return exitUsage
	}
	r, err := measure(ctx, b)
	if err == nil {
		err = tell(out, output, r)
	}
	if err != nil {
		fmt.Fprintln(errs, err)
	}
	if err != nil || !r.OK {
		return exitFailed
	}
	return 0
}

// parse reads the arguments, and writes the help to out if that is what they ask for.
func parse(args []string, out io.Writer) (b *bench.Bench, output string, err error) {
	b = bench.New()
	f := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	f.Usage = func() { fmt.Fprint(out, help, f.FlagUsages()) }
	b.AllFlags(f)
	f.StringVar(&b.Quotad, "quotad", "", "`path` of the binary to measure (default: built from this module)")
	f.StringVarP(&output, "output", "o", "table", "table or json")
	switch err := f.Parse(args); {
	case err != nil:
		return nil, "", err
	case f.NArg() > 0:
		return nil, "", fmt.Errorf("unexpected argument %q; see --help", f.Arg(0))
	case output != "table" && output != "json":
		return nil, "", fmt.Errorf("-o %q: choose table or json", output)
	}
	return b, output, b.Check()
}

// measure builds the binary, if none is named, and measures it.
func measure(ctx context.Context, b *bench.Bench) (*bench.Report, error) {
	if b.Quotad == "" {
		dir, err := os.MkdirTemp("", "quotad-bench-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		if b.Quotad, err = process.Build(ctx, dir); err != nil {
			return nil, err
		}
	}
	return b.Run(ctx, func(string) {})
}

func tell(out io.Writer, output string, r *bench.Report) error {
	if output == "table" {
		return r.Table(out)
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
