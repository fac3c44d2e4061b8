package bench

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/quotad/quotad/algorithms"
)

// Flags adds the flags with which a node is sized. What b holds are their defaults.
func (b *Bench) Flags(f *pflag.FlagSet) {
	f.IntVar(&b.Limits, "limits", b.Limits,
		"limits that each request meets, 1 to 64; a node takes fewer")
	f.IntVar(&b.Callers, "callers", b.Callers, "callers of a server, 1 to 4096")
	f.StringVar(&b.Keys, "keys", b.Keys,
		"how requests spread over the keys: "+strings.Join(spreads, ", "))
	f.DurationVar(&b.Duration, "duration", b.Duration,
		"how long each server is measured in a round, 50ms to 1m")
	f.IntVar(&b.Rounds, "rounds", b.Rounds, "number of rounds, 1 to 50")
	f.IntVar(&b.Batch, "batch", b.Batch,
		"decisions in a call, 1 to 1000; above 1 by CheckBatch, with --http by /v1/check-batch")
	f.BoolVar(&b.HTTP, "http", b.HTTP, "over HTTP with JSON in place of gRPC")
	f.BoolVar(&b.RLS, "rls", b.RLS, "also ask the node as an Envoy rate limit service")
}

// AllFlags adds those of Flags, and those with which quotad itself is worked on.
func (b *Bench) AllFlags(f *pflag.FlagSet) {
	b.Flags(f)
	f.StringVar(&b.Algorithm, "algorithm", b.Algorithm,
		"algorithm of the limit: "+listed(algorithms.Kinds))
	f.StringVar(&b.Consistency, "consistency", b.Consistency,
		"consistency of the limit: "+listed(consistencies))
	f.IntVar(&b.Among, "among", b.Among, "number of keys, 1 to 1000000")
	f.StringVar(&b.GRPC, "grpc", "", "gRPC `host:port` of a node that runs already, on loopback")
	f.IntSliceVar(&b.PIDs, "pid", nil, "with --grpc: `process` IDs whose processor time is counted")
	f.StringVar(&b.Compare.Address, "compare", "",
		"gRPC `host:port` of an Envoy rate limit service that runs already, on loopback")
	f.IntSliceVar(&b.Compare.PIDs, "compare-pid", nil,
		"with --compare: `process` IDs whose processor time is counted")
	f.StringVar(&b.Compare.Domain, "compare-domain", b.Compare.Domain,
		"with --compare: domain of all requests")
	f.StringVar(&b.Compare.Descriptor, "compare-descriptor", b.Compare.Descriptor,
		"with --compare: `entries` of a descriptor, NAME=VALUE,... with {key} for the key")
	b.Asked = f.Changed
}
