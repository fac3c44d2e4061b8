package bench

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/quotad/quotad/algorithms"
)

// The bounds of the options.
const (
	// minDuration: processor time is counted in steps of some milliseconds.
	minDuration = 50 * time.Millisecond
	maxDuration = time.Minute
	maxRounds   = 50
	maxCallers  = 4096
	maxAmong    = 1_000_000
	maxPIDs     = 64
	// maxBatch is as many requests as the API takes in one call.
	maxBatch = 1000
	// maxLimits bounds the limits of a document. How many a request may meet depends on their
	// algorithm, too (mostLimits).
	maxLimits = 64
	// maxConnections bounds the connections to each server.
	maxConnections = 8
)

// The values of Bench.Consistency.
const (
	exact    = "exact"
	prefetch = "prefetch"
)

// consistencies lists them, the default first.
var consistencies = []string{exact, prefetch}

// prefetches lists the algorithms whose limits may say consistency: prefetch.
var prefetches = []algorithms.Kind{algorithms.FixedWindow, algorithms.SlidingWindowCounter}

// Bench holds the options of a run. New returns the usual ones.
type Bench struct {
	Quotad      string // path of the binary that is measured, and that serves the floor
	Algorithm   string
	Consistency string // one of consistencies
	Limits      int    // that each request meets
	Callers     int
	Keys        string // one of spreads
	Among       int    // number of keys
	Duration    time.Duration
	Rounds      int
	Batch       int    // decisions in each call
	HTTP        bool   // over HTTP in place of gRPC
	RLS         bool   // also as an Envoy rate limit service
	GRPC        string // host:port of a node that runs already; empty: start one
	PIDs        []int  // processes of that node
	Compare     Compare

	// Asked reports whether an option was given, by the name of its flag.
	Asked func(flag string) bool
}

// New returns the options of whoever gives none, all but Quotad.
func New() *Bench {
	return &Bench{Algorithm: string(algorithms.FixedWindow), Consistency: exact, Limits: 1,
		Callers: 64, Keys: spreads[0], Among: 10_000, Duration: 2 * time.Second, Rounds: 5, Batch: 1,
		Compare: Compare{Domain: domain, Descriptor: descriptor + "=" + keyMark},
		Asked:   func(string) bool { return false }}
}

// Check returns everything that is wrong with the options.
func (b *Bench) Check() error {
	var all problems
	b.checkLimits(&all)
	all.within("callers", b.Callers, maxCallers)
	if !slices.Contains(spreads, b.Keys) {
		all.add("--keys %q: choose %s", b.Keys, listed(spreads))
	}
	all.within("among", b.Among, maxAmong)
	if b.Duration < minDuration || b.Duration > maxDuration {
		all.add("--duration %s: give %s to %s", span(b.Duration), span(minDuration),
			span(maxDuration))
	}
	all.within("rounds", b.Rounds, maxRounds)
	all.within("batch", b.Batch, maxBatch)
	if b.HTTP && b.GRPC != "" {
		all.add("--http: a node that runs already is called over gRPC: leave out --http, or --grpc")
	}
	if b.RLS && (b.HTTP || b.Batch > 1) {
		all.add("--rls: a decision of Envoy is a call of gRPC: leave out --http and --batch")
	}
	b.checkDriven(&all)
	b.checkCompare(&all)
	return errors.Join(all...)
}

// checkLimits checks what the limits document of the node is made of.
func (b *Bench) checkLimits(all *problems) {
	kind := algorithms.Kind(b.Algorithm)
	known := slices.Contains(algorithms.Kinds, kind)
	if !known {
		all.add("--algorithm %q: choose %s", b.Algorithm, listed(algorithms.Kinds))
	}
	switch {
	case !slices.Contains(consistencies, b.Consistency):
		all.add("--consistency %q: choose %s", b.Consistency, listed(consistencies))
	case known && b.Consistency == prefetch && !slices.Contains(prefetches, kind):
		all.add("--consistency %s: a %s counts the moment of each admission, so units charged "+
			"beforehand would count for too short: choose --algorithm %s", prefetch, kind,
			listed(prefetches))
	}
	switch most := mostLimits(kind); {
	case b.Limits < 1 || b.Limits > maxLimits:
		all.add("--limits %d: give 1 to %d", b.Limits, maxLimits)
	case known && b.Limits > most:
		all.add("--limits %d: a node refuses a request that meets more than %s of "+
			"%s: give 1 to %d", b.Limits, counted(most, "limit"), kind, most)
	}
}

// mostLimits returns how many limits of a kind a request may meet, so that a script's work is
// bounded.
func mostLimits(kind algorithms.Kind) int {
	return int(algorithms.MaxLoad / algorithms.LoadOf(kind))
}

// checkDriven checks what is said about a node that runs already.
func (b *Bench) checkDriven(all *problems) {
	if b.GRPC == "" && len(b.PIDs) > 0 {
		all.add("--pid names processes of a node that runs already: add --grpc, or leave it out")
	}
	all.processes("pid", b.PIDs)
	if b.GRPC == "" {
		return
	}
	if !onLoopback(b.GRPC) {
		all.add("--grpc %q: give the address of a node on this machine's loopback, "+
			"such as 127.0.0.1:8081", b.GRPC)
	}
	for _, flag := range []string{"algorithm", "consistency", "limits"} {
		if b.Asked(flag) {
			all.add("--%s: the limits document of the node at --grpc chooses it: "+
				"leave one of them out", flag)
		}
	}
}

// onLoopback reports whether an address is host:port on loopback.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// connections returns the number of connections to each server. Over HTTP each caller has one.
func (b *Bench) connections() int {
	if b.HTTP {
		return b.Callers
	}
	return min(b.Callers, maxConnections)
}

// problems collects what is wrong with options.
type problems []error

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Errorf(format, args...)) }

func (p *problems) within(flag string, n, most int) {
	if n < 1 || n > most {
		p.add("--%s %d: give 1 to %d", flag, n, most)
	}
}

// processes checks process IDs.
func (p *problems) processes(flag string, pids []int) {
	if len(pids) > maxPIDs {
		p.add("--%s names %d processes: give at most %d", flag, len(pids), maxPIDs)
	}
	for _, pid := range pids {
		if !procfs.runs(pid) {
			p.add("--%s %d: there is no such process", flag, pid)
		}
	}
}
