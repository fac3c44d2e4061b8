// Package fronts stands behind the servers of a node in their tests: a node that gives the answers a
// test sets, and a real one of chaos/lab/cluster; callers with roles; and ways to serve and to ask.
package fronts

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/decide/envoys"
	"github.com/quotad/quotad/region/decide/local"
	"github.com/quotad/quotad/region/decide/receipts"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/memory/tenure"
	"github.com/quotad/quotad/region/trade/second"
)

// Node gives the answers that a test sets, and remembers the requests. The zero value allows nothing.
// Mu is for what follows it.
type Node struct {
	Decision admit.Decision
	Err      error
	Fault    any // if not nil, to panic with
	// if not nil, in place of decision and err
	Decide   func(admit.Request) (admit.Decision, error)
	Wait     func(context.Context, admit.Request) error     // if not nil, called by Check first
	BucketOf func(map[string]string) (region.Bucket, error) // if not nil, in place of err
	Settled  receipts.Settled                               // of the receipt Receipt
	State    region.Status

	Mu          sync.Mutex
	notReady    error
	Checked     []admit.Request
	Peeked      []admit.Request
	Reported    []admit.Request
	Taken       []admit.Take
	Resets      []map[string]string // the descriptors
	waived      int
	Panics      []string         // where
	BusyCallers map[string]bool  // callers
	Open        *policy.Document // nil: that of Document
	assigner    *envoys.Assigner

	Views
}

// Document is the document that is open in a Node.
const Document = "version: 3\nregions: {us-east: {weight: 1}, eu-west: {weight: 1}}\nlimits:\n" +
	"  - {name: a, domain: api, key: [account], algorithm: fixed_window, limit: 100, window: 1m}\n"

// Document implements what servers need of a node.
func (f *Node) Document() *policy.Document {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.Open == nil {
		d, err := policy.Parse("limits.yaml", []byte(Document))
		if err != nil {
			panic(err)
		}
		f.Open = d
	}
	return f.Open
}

// Adopt opens a document as a node does that is alone.
func (f *Node) Adopt(_ context.Context, d *policy.Document) error {
	if f.Err != nil {
		return f.Err
	}
	_, err := barrier.Of(f.Document()).Learn(d)
	if err == nil {
		f.Mu.Lock()
		defer f.Mu.Unlock()
		f.Open = d
	}
	return err
}

// AskDocuments implements what servers need of a node.
func (f *Node) AskDocuments(context.Context) []region.NodeDocuments {
	return []region.NodeDocuments{{Node: "eu-west/n1", File: "passed over"},
		{Node: "us-east/n1", Open: []policy.Epoch{f.Document().Epoch()}}}
}

// Envoys returns an assigner that is never run, and knows no rules.
func (f *Node) Envoys() *envoys.Assigner {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.assigner == nil {
		f.assigner = envoys.New(envoys.Config{Nodes: 1, Rights: &Generous{}, Now: time.Now})
	}
	return f.assigner
}

// Busy implements what servers need of a node.
func (f *Node) Busy(caller string, _ time.Duration) bool {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return f.BusyCallers[caller]
}

// Check implements what servers need of a node.
func (f *Node) Check(ctx context.Context, q admit.Request) (admit.Decision, error) {
	f.Mu.Lock()
	f.Checked = append(f.Checked, q)
	f.Mu.Unlock()
	if f.Wait != nil {
		if err := f.Wait(ctx, q); err != nil {
			return admit.Decision{}, err
		}
	}
	return f.answer(q)
}

// CheckBatch checks all requests at the same time, and answers wrong ones alone, as a node does.
func (f *Node) CheckBatch(ctx context.Context, all []admit.Request) ([]admit.Decision, error) {
	decisions, errs, panics := make([]admit.Decision, len(all)), make([]error, len(all)),
		make([]any, len(all))
	var done sync.WaitGroup
	for i, q := range all {
		done.Go(func() {
			defer func() { panics[i] = recover() }()
			decisions[i], errs[i] = f.Check(ctx, q)
			if problem, wrong := errors.AsType[*invalid.Field](errs[i]); wrong {
				decisions[i] = admit.Decision{Reason: admit.InvalidRequest, Problem: problem,
					Node: "n1", Region: "us-east"}
				errs[i] = nil
			}
		})
	}
	done.Wait()
	for i := range all {
		if panics[i] != nil {
			panic(panics[i])
		}
		if errs[i] != nil {
			return nil, errs[i]
		}
	}
	return decisions, nil
}

// Peek implements what servers need of a node.
func (f *Node) Peek(_ context.Context, q admit.Request) (admit.Decision, error) {
	f.Mu.Lock()
	f.Peeked = append(f.Peeked, q)
	f.Mu.Unlock()
	return f.answer(q)
}

// Report implements what servers need of a node.
func (f *Node) Report(_ context.Context, q admit.Request) (admit.Decision, error) {
	f.Mu.Lock()
	f.Reported = append(f.Reported, q)
	f.Mu.Unlock()
	return f.answer(q)
}

func (f *Node) answer(q admit.Request) (admit.Decision, error) {
	if f.Fault != nil {
		panic(f.Fault)
	}
	if err := q.Validate(); err != nil {
		return admit.Decision{}, err
	}
	if f.Decide != nil {
		return f.Decide(q)
	}
	return f.Decision, f.Err
}

// Take grants what is asked for.
func (f *Node) Take(_ context.Context, t admit.Take) (admit.Taken, error) {
	if f.Fault != nil {
		panic(f.Fault)
	}
	if err := t.Validate(); err != nil {
		return admit.Taken{}, err
	}
	f.Mu.Lock()
	f.Taken = append(f.Taken, t)
	f.Mu.Unlock()
	return admit.Taken{Units: t.Units, Decision: f.Decision, SpendWithin: time.Second,
		Receipt: Receipt}, f.Err
}

// Status implements what servers need of a node.
func (f *Node) Status() region.Status { return f.State }

// Bucket implements what servers need of a node.
func (f *Node) Bucket(_ context.Context, limit, domain string,
	descriptors map[string]string) (region.Bucket, error) {
	if f.Fault != nil {
		panic(f.Fault)
	}
	if err := (admit.Request{Domain: domain, Descriptors: descriptors,
		Cost: 1}).Validate(); err != nil {
		return region.Bucket{}, err
	}
	if limit != "account-minute" {
		return region.Bucket{}, rules.ErrNoSuchBucket
	}
	if f.BucketOf != nil {
		return f.BucketOf(descriptors)
	}
	return Bucket(), f.Err
}

// Receipt is the only receipt that a Node settles.
const Receipt = "-Rc_9"

// Settle implements what servers need of a node.
func (f *Node) Settle(_ context.Context, receipt string, used quantity.Units) (receipts.Settled, error) {
	switch {
	case f.Fault != nil:
		panic(f.Fault)
	case receipt != Receipt:
		return receipts.Settled{}, invalid.Fieldf("receipt", "is none; send the receipt of a decision as it was given")
	}
	f.Settled.Used = used
	return f.Settled, f.Err
}

// Receipt knows Receipt, which is about one bucket.
func (f *Node) Receipt(receipt string) ([]policy.BucketRef, error) {
	if receipt != Receipt {
		return nil, invalid.Fieldf("receipt", "is none; send the receipt of a decision as it was given")
	}
	return []policy.BucketRef{{Domain: "api", Name: "account-minute",
		Key: []policy.KeyValue{{Name: "account", Value: "42"}}}}, nil
}

// Reset implements what servers need of a node.
func (f *Node) Reset(ctx context.Context, limit, domain string,
	descriptors map[string]string) (quantity.Units, error) {
	b, err := f.Bucket(ctx, limit, domain, descriptors)
	if err != nil {
		return 0, err
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Resets = append(f.Resets, descriptors)
	return b.Inspected.Used, nil
}

// Recovering implements what servers need of a node.
func (f *Node) Recovering() []region.Recovering { return f.State.Recovering }

// Waive implements what servers need of a node.
func (f *Node) Waive(context.Context) error {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.waived++
	return nil
}

// Ready implements what servers need of a node.
func (f *Node) Ready() error {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return f.notReady
}

// SetReady says why the node is not ready.
func (f *Node) SetReady(err error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.notReady = err
}

// Asked returns how many requests were checked and peeked at.
func (f *Node) Asked() (checked, peeked int) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return len(f.Checked), len(f.Peeked)
}

// Metrics implements what servers need of a node.
func (f *Node) Metrics() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "quotad_fake_total",
		Help: "A number of the node's."}))
	return r
}

// CountPanic implements what servers need of a node.
func (f *Node) CountPanic(where string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Panics = append(f.Panics, where)
}

// Allowed is a decision of a limit that admits.
func Allowed() admit.Decision {
	return admit.Decision{Allowed: true, Reason: admit.WithinLimit, Limit: "account-minute",
		Algorithm: algorithms.FixedWindow, LimitUnits: 1000,
		Window: time.Minute, Remaining: 57, ResetAfter: 10*time.Second + 250*time.Microsecond,
		Cell: 29394720,
		At:   1763683189999750, Node: "n1", Region: "us-east", Entitlement: 400, Share: 425,
		Sequence: 7}
}

// With changes a decision.
func With(d admit.Decision, change func(*admit.Decision)) admit.Decision {
	change(&d)
	return d
}

// Denied is a decision of a limit that denies.
func Denied() admit.Decision {
	return With(Allowed(), func(d *admit.Decision) {
		d.Allowed, d.Reason, d.Remaining, d.RetryAfter = false, admit.OverLimit, 0,
			10*time.Second+250*time.Microsecond
	})
}

// Owing is a decision on a cost that was reported and did not fit.
func Owing() admit.Decision {
	return With(Denied(), func(d *admit.Decision) { d.Owed = 540 })
}

// Undecided is a decision for which neither store nor node counted.
func Undecided(reason admit.Reason) admit.Decision {
	return admit.Decision{Allowed: reason == admit.StoreFailureAllowed, Reason: reason,
		Limit: "account-minute", Algorithm: algorithms.FixedWindow,
		LimitUnits: 1000, Window: time.Minute, Node: "n1", Region: "us-east", Entitlement: 400,
		Sequence: 8, Degraded: true}
}

// Bucket is a bucket with what other regions lent and borrowed.
func Bucket() region.Bucket {
	return region.Bucket{Limit: &policy.Limit{Name: "account-minute", Limit: 1000},
		Terms: algorithms.Terms{Kind: algorithms.FixedWindow, Entitlement: 400},
		Inspected: algorithms.Inspected{State: algorithms.State{Cell: 5, Used: 31, Share: 425,
			NextShare: 400, Fading: 31, Free: 394}, Rows: []algorithms.PeerRow{
			{Cell: 5, Peer: "ap-south", Row: algorithms.Row{Lent: 1, Returned: 2, Borrowed: 3,
				Regained: 4}},
			{Cell: 5, Peer: "eu-west", Row: algorithms.Row{Borrowed: 23}}}}}
}

// TokenBucket is a bucket of the kind whose burst is lent.
func TokenBucket() region.Bucket {
	b := Bucket()
	b.Terms.Kind, b.Terms.Burst = algorithms.TokenBucket, 80
	b.Inspected.Fading = 0
	b.Inspected.Rows = []algorithms.PeerRow{{Cell: 5, Peer: "eu-west",
		Row: algorithms.Row{BurstLent: 6, BurstBorrowed: 7}}}
	return b
}

// Status is a status with all that there is to know.
func Status() region.Status {
	return region.Status{Region: "us-east", Node: "n1", Epoch: "3:abc", Generation: 2,
		Peers: []region.Peer{{Region: "eu-west", Heard: true,
			Age: 120*time.Millisecond + 500*time.Microsecond, RoundTrip: 80 * time.Millisecond,
			Degraded: true, ClockKnown: true, ClockApart: -30 * time.Millisecond}},
		Members: []string{"eu-west/n1", "us-east/n1", "us-east/n2"}, Mates: []string{"us-east/n2"},
		Store: region.StoreStatus{Kind: "sentinel", Address: "127.0.0.1:26379/main",
			Data: []string{"0123abcd"}, LastLoss: time.Unix(3600, 0),
			Losses: 1, OutOfReach: []string{"quotad"}, Eviction: "noeviction",
			Refusing: []tenure.Refusal{{Kind: "OOM", Calls: 7, Advice: "raise its maxmemory"}},
			ID:       "ab12", Nodes: 2, Stopped: &tenure.Stopped{Why: "two stores", Next: "mend it"},
			Rivals: []second.Rival{{Node: "us-east/n2", Origin: store.Origin{ID: "cd34", Since: 1},
				Hearsay: true}}},
		Journal: region.JournalStatus{Incarnation: 2, Sequence: 9, Rows: 4, Checkpoints: 3,
			Whole: true},
		Local: local.Status{Buckets: 1, Units: 7, Unbooked: 5},
		Exchange: exchange.Stats{Moved: exchange.Moved{Borrowed: 26}, Recovering: 5, PartlyKnown: 2,
			Recovered: 8}}
}

// CheckLists decides a request with lists as one.
func (f *Node) CheckLists(ctx context.Context, q admit.Request) (admit.ListsDecision, error) {
	d, err := f.Check(ctx, q)
	all := admit.ListsDecision{Allowed: d.Allowed, Decisions: []admit.Decision{d}, Of: [][]int{nil}, Spared: []bool{false}}
	for i := range q.Lists {
		all.Of[0] = append(all.Of[0], i)
	}
	return all, err
}

// RefundLast implements what servers need of a node.
func (f *Node) RefundLast(context.Context, string, admit.List, []string) (receipts.Settled, error) {
	return f.Settled, f.Err
}

// Buckets implements what servers need of a node.
func (f *Node) Buckets(domain string, list admit.List) []policy.BucketRef {
	return []policy.BucketRef{{Domain: domain, Name: "account-minute", Key: list.Entries}}
}

// Generous is a store that has what is asked for.
type Generous struct {
	OwnRules *rules.Rules
	At       time.Duration
}

// TheStart is when a generous store's time begins.
const TheStart = 1_800_000_000

// Time returns the time of the store.
func (g *Generous) Time() time.Time { return time.Unix(TheStart, 0).Add(g.At) }

// Rules implements envoys.Rights.
func (g *Generous) Rules() *rules.Rules { return g.OwnRules }

// Exists implements envoys.Rights.
func (g *Generous) Exists(*exchange.Bucket) quantity.StoreTime { return 0 }

// ObserveEnvoys implements envoys.Rights.
func (g *Generous) ObserveEnvoys(*exchange.Bucket, quantity.MilliRate, quantity.MilliRate) {}

// Allotments implements envoys.Rights.
func (g *Generous) Allotments() map[string]quantity.Units { return nil }

// Charge implements envoys.Rights.
func (g *Generous) Charge(context.Context, *rules.Rules, *rules.Applied, quantity.Units) bool {
	return true
}

// Assign implements envoys.Rights.
func (g *Generous) Assign(_ context.Context, _ []*exchange.Bucket,
	calls []algorithms.Assign) []algorithms.Assigned {
	all := make([]algorithms.Assigned, len(calls))
	for i, c := range calls {
		all[i] = algorithms.Assigned{Held: c.Held, Returned: c.Returned,
			Head: algorithms.Head{Status: algorithms.StatusOK,
				Now: quantity.StoreTime(g.Time().UnixMicro())}}
	}
	return all
}
