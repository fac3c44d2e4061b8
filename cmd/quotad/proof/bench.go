package proof

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/chaos/real/bench"
	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/cmd/quotad/tuning"
)

func benchCommand() *cobra.Command {
	b := bench.New()
	var output string
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what a decision costs, beside what it could cost at the least",
		Long:  benchHelp,
		Example: `  quotad bench
  quotad bench --keys zipf --callers 8 -o json
  quotad bench --callers 2 --batch 1000
  quotad bench --limits 10`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runBench(cmd.Context(), b, output, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	b.Flags(cmd.Flags())
	command.OutputFlag(cmd, &output)
	cmd.AddCommand(benchFloorCommand())
	return cmd
}

const benchHelp = `bench starts three servers on loopback, offers each the same load by turns, round by
round, and prints the median of the rounds. A machine that is slow for a while slows down all three.

  quotad  a node with one region and one limit that admits everything
  floor   a gRPC server that gives the same answer to every request: no server can cost less
  lean    the same, with one small script call (HMGET, HSET) in the same Redis for each decision

Each caller makes its next call when the last one was answered. A node takes only so many batches
at a time and has others wait, so give large batches few callers. With --limits each request meets
so many limits of the node, up to 11, each with a bucket for the key, and lean makes a script call
for each. With --rls the node is measured once more as "rls", asked as an Envoy rate limit service.
The calls of the first 300 ms of each round are not counted. Columns, and their names in -o json
under subjects:

  decisions/s    decisions_per_second
  p50 us ...     p50_us, p99_us, p999_us: time of a call as its caller sees it, microseconds
  server CPU us  server_cpu_us_per_decision: processor time of the server, as the system counts it
  Redis CPU us   redis_cpu_us_per_decision: that of its redis-server
  scripts        script_calls_per_decision: EVALSHA calls that the Redis counted
  allocations    allocations_per_decision: objects, by the node's go_memstats_mallocs_total
  times floor    times_floor: processor time of server and Redis, divided by that of the floor
  refused        refused: requests that the server had no time to decide
  late           late: requests without an answer within 4 s
  errors         errors: requests with another error
  denied         denials

In -o json a subject also has name, decisions (of all rounds) and first_error; what is not known
is null. Beside subjects there are ok, problems, build, os, arch, processors, redis_version,
algorithm, consistency, limits, callers, connections, keys, among, batch, http, rounds,
round_seconds, and other_work_processors: how many processors other processes kept busy meanwhile.
Above 0.1 that is told (busy): then only ratios mean something. Processor times need /proc.

It needs a redis-server, and Linux or loopback aliases. All that was started ends with the
command. In a clone of quotad's repository, go run ./chaos/bench varies more: the algorithm, and
nodes and other servers that run already.

Exit codes: 0 measured, 1 it could not be measured, or more than 1 % of a server's requests failed
or were denied, 2 usage.`

// runBench measures this binary, and writes the result. The error carries the exit code if too many
// calls failed.
func runBench(ctx context.Context, b *bench.Bench, output string, out, errs io.Writer) (err error) {
	if err := b.Check(); err != nil {
		return exit.Usage(err)
	}
	if b.Quotad, err = os.Executable(); err != nil {
		return fmt.Errorf("find this binary: %w", err)
	}
	progress := func(string) {}
	if output == "table" && show.IsTerminal(errs) {
		progress = func(text string) { fmt.Fprintf(errs, "\r\033[K%s", strings.TrimSpace(text)) }
	}
	r, err := b.Run(ctx, progress)
	if err != nil {
		return err
	}
	if err := show.Result(out, output, r, r.Table); err != nil {
		return err
	}
	if !r.OK {
		return exit.Silently(exit.Failed)
	}
	return nil
}

// benchFloorCommand is the server of bench's floor, which bench starts itself. The runtime has the same
// settings there as in a node.
func benchFloorCommand() *cobra.Command {
	var floor bench.Floor
	cmd := &cobra.Command{
		Use:    "floor",
		Short:  "Give the same answer to every request",
		Hidden: true,
		Args:   command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer tuning.Tune()()
			return floor.Serve(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&floor.Answer, "answer", "",
		"`file` with the encoded CheckResponse, or with --http the JSON of a decision")
	f.BoolVar(&floor.HTTP, "http", false, "serve HTTP in place of gRPC")
	f.StringVar(&floor.Redis, "redis", "",
		"`host:port` of a Redis for script calls before each decision")
	f.IntVar(&floor.Limits, "limits", 1, "with --redis: script calls for each decision, 1 to 64")
	return cmd
}
