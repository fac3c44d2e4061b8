package proof

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/proof/bench"
	"github.com/quotad/quotad/cmd/quotad/show"
)

func benchCommand() *cobra.Command {
	var b bench.Bench
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what a decision costs, beside what it could cost at the least",
		Long: `bench starts three servers on loopback, offers each the same load by turns, round by
round, and prints the median of the rounds. A machine that is slow for a while slows down all three.

  quotad  a node with one region and one limit that admits everything
  floor   a gRPC server that gives the same answer to every request: no server can cost less
  lean    the same, with one small script call (HMGET, HSET) in the same Redis for each decision

Each caller makes its next call when the last one was answered. A node takes only so many batches
at a time and has others wait, so give large batches few callers. With --limits each request meets
so many limits of the node, each with a bucket for the key, and lean makes a script call for each:
up to 11 of fixed_window or token_bucket, 5 of leaky_bucket, 3 of sliding_window_counter, 2 of
sliding_window_log. With --consistency prefetch the node holds units of keys that are asked for
80 times a second or more, and decides the others exactly: use few keys. The calls of the first
300 ms of each round are not counted. Columns, and their names in -o json under subjects:

  decisions/s    decisions_per_second
  p50 us ...     p50_us, p99_us, p999_us: time of a call as its caller sees it, microseconds
  server CPU us  server_cpu_us_per_decision: processor time of the server, as the system counts it
  Redis CPU us   redis_cpu_us_per_decision: that of its redis-server
  scripts        script_calls_per_decision: EVALSHA calls that the Redis counted
  allocations    allocations_per_decision: objects, by the node's go_memstats_mallocs_total
  times floor    times_floor: processor time of server and Redis, divided by that of the floor
  errors         errors: requests without an answer within 4 s, or with an error
  denied         denials

In -o json a subject also has name, decisions (of all rounds) and first_error; what is not known
is null. Beside subjects there are ok, problems, build, os, arch, processors, redis_version,
driven (with --grpc), compared and compared_tells_limit (with --compare),
algorithm, consistency, limits, callers, connections, keys, among, batch, http, rounds,
round_seconds, and other_work_processors: how many processors other processes kept busy meanwhile.
Above 0.1 that is told (busy): then only ratios mean something. Processor times need /proc.

With --grpc a node that runs already takes the place of the first server, and --pid names the
processes whose processor time is counted: those named redis-server as its Redis, all others as
the server. The load is real. The node's document needs a limit that admits it all:

  - {name: bench, domain: bench, key: [key], algorithm: fixed_window, limit: 1000000000, window: 1h}

With --rls the node is measured once more as "rls", asked as an Envoy rate limit service.

With --compare a server of envoy.service.ratelimit.v3.RateLimitService that runs already is
measured, too, as "compared". A decision there is a descriptor, or with --limits one for each of
them, with the values KEY, KEY/2, ...; with --batch they are all in one call.
--compare-pid counts for it as --pid does for the node. A configuration of envoyproxy/ratelimit:

  domain: bench
  descriptors:
    - {key: key, rate_limit: {unit: hour, requests_per_unit: 1000000000}}

It needs a redis-server, and Linux or loopback aliases. All that was started ends with the
command.

Exit codes: 0 measured, 1 it could not be measured, or more than 1 % of a server's requests failed
or were denied, 2 usage.`,
		Example: `  quotad bench
  quotad bench --algorithm token_bucket --keys zipf --callers 8 -o json
  quotad bench --callers 2 --batch 1000
  quotad bench --keys one --consistency prefetch
  quotad bench --limits 10
  quotad bench --grpc 127.0.0.1:8081 --pid 4711,4712
  quotad bench --compare 127.0.0.1:8091 --compare-pid 4713,4714`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b.Asked = cmd.Flags().Changed
			return b.Run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&b.Algorithm, "algorithm", string(algorithms.FixedWindow),
		"algorithm of the limit: "+show.Listed(algorithms.Kinds))
	f.StringVar(&b.Consistency, "consistency", bench.Consistencies[0],
		"consistency of the limit: "+show.Listed(bench.Consistencies))
	f.IntVar(&b.Limits, "limits", 1, "limits that each request meets, 1 to 64; a node takes fewer")
	f.IntVar(&b.Callers, "callers", 64, "callers of a server, 1 to 4096")
	f.StringVar(&b.Keys, "keys", bench.Spreads[0],
		"how requests spread over the keys: "+strings.Join(bench.Spreads, ", "))
	f.IntVar(&b.Among, "among", 10_000, "number of keys, 1 to 1000000")
	f.DurationVar(&b.Duration, "duration", 2*time.Second,
		"how long each server is measured in a round, 50ms to 1m")
	f.IntVar(&b.Rounds, "rounds", 5, "number of rounds, 1 to 50")
	f.IntVar(&b.Batch, "batch", 1,
		"decisions in a call, 1 to 1000; above 1 by CheckBatch, with --http by /v1/check-batch")
	f.BoolVar(&b.HTTP, "http", false, "over HTTP with JSON in place of gRPC")
	f.BoolVar(&b.RLS, "rls", false, "also ask the node as an Envoy rate limit service")
	f.StringVar(&b.GRPC, "grpc", "", "gRPC `host:port` of a node that runs already, on loopback")
	f.IntSliceVar(&b.PIDs, "pid", nil, "with --grpc: `process` IDs whose processor time is counted")
	f.StringVar(&b.Compare.Address, "compare", "",
		"gRPC `host:port` of an Envoy rate limit service that runs already, on loopback")
	f.IntSliceVar(&b.Compare.PIDs, "compare-pid", nil,
		"with --compare: `process` IDs whose processor time is counted")
	f.StringVar(&b.Compare.Domain, "compare-domain", bench.CompareDomain,
		"with --compare: domain of all requests")
	f.StringVar(&b.Compare.Descriptor, "compare-descriptor", bench.CompareDescriptor,
		"with --compare: `entries` of a descriptor, NAME=VALUE,... with {key} for the key")
	command.OutputFlag(cmd, &b.Output)
	cmd.AddCommand(benchFloorCommand())
	return cmd
}

// benchFloorCommand is the server of bench's floor, which bench starts itself.
func benchFloorCommand() *cobra.Command {
	var floor bench.Floor
	cmd := &cobra.Command{
		Use:    "floor",
		Short:  "Give the same answer to every request",
		Hidden: true,
		Args:   command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
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
