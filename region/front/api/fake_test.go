package api

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/decide/envoys"
	"github.com/quotad/quotad/region/decide/local"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/memory/tenure"
	"github.com/quotad/quotad/region/trade/second"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeNode gives the answers that a test sets, and remembers the requests.
type fakeNode struct {
	decision admit.Decision
	err      error
	fault    any // if not nil, to panic with
	// if not nil, in place of decision and err
	decide   func(admit.Request) (admit.Decision, error)
	wait     func(context.Context, admit.Request) error     // if not nil, called by Check first
	bucket   func(map[string]string) (region.Bucket, error) // if not nil, in place of err
	refunded admit.Refunded                                 // of the receipt aReceipt
	status   region.Status

	mu       sync.Mutex
	notReady error
	checked  []admit.Request
	peeked   []admit.Request
	taken    []admit.Take
	reset    []map[string]string // the descriptors
	waived   int
	panics   []string         // where
	busy     map[string]bool  // callers
	open     *policy.Document // nil: that of aDocument
	envoys   *envoys.Assigner

	fakeViews
}

// aDocument is the document that is open in a fakeNode.
const aDocument = "version: 3\nregions: {us-east: {weight: 1}, eu-west: {weight: 1}}\nlimits:\n" +
	"  - {name: a, domain: api, key: [account], algorithm: fixed_window, limit: 100, window: 1m}\n"

func (f *fakeNode) Document() *policy.Document {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil {
		d, err := policy.Parse("limits.yaml", []byte(aDocument))
		if err != nil {
			panic(err)
		}
		f.open = d
	}
	return f.open
}

// Adopt opens a document as a node does that is alone.
func (f *fakeNode) Adopt(_ context.Context, d *policy.Document) error {
	if f.err != nil {
		return f.err
	}
	_, err := barrier.Of(f.Document()).Learn(d)
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.open = d
	}
	return err
}

func (f *fakeNode) AskDocuments(context.Context) []region.NodeDocuments {
	return []region.NodeDocuments{{Node: "eu-west/n1", File: "passed over"},
		{Node: "us-east/n1", Open: []policy.Epoch{f.Document().Epoch()}}}
}

// Envoys returns an assigner that is never run, and knows no rules.
func (f *fakeNode) Envoys() *envoys.Assigner {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.envoys == nil {
		f.envoys = envoys.New(envoys.Config{Nodes: 1, Rights: &generous{}, Now: time.Now})
	}
	return f.envoys
}

func (f *fakeNode) Busy(caller string, _ time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.busy[caller]
}

func (f *fakeNode) Check(ctx context.Context, q admit.Request) (admit.Decision, error) {
	f.mu.Lock()
	f.checked = append(f.checked, q)
	f.mu.Unlock()
	if f.wait != nil {
		if err := f.wait(ctx, q); err != nil {
			return admit.Decision{}, err
		}
	}
	return f.answer(q)
}

// CheckBatch checks all requests at the same time, and answers wrong ones alone, as a node does.
func (f *fakeNode) CheckBatch(ctx context.Context, all []admit.Request) ([]admit.Decision, error) {
	decisions, errs, panics := make([]admit.Decision, len(all)), make([]error, len(all)),
		make([]any, len(all))
	var done sync.WaitGroup
	for i, q := range all {
		done.Go(func() {
			defer func() { panics[i] = recover() }()
			decisions[i], errs[i] = f.Check(ctx, q)
			if problem, wrong := errors.AsType[*admit.FieldError](errs[i]); wrong {
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

func (f *fakeNode) Peek(_ context.Context, q admit.Request) (admit.Decision, error) {
	f.mu.Lock()
	f.peeked = append(f.peeked, q)
	f.mu.Unlock()
	return f.answer(q)
}

func (f *fakeNode) answer(q admit.Request) (admit.Decision, error) {
	if f.fault != nil {
		panic(f.fault)
	}
	if err := q.Validate(); err != nil {
		return admit.Decision{}, err
	}
	if f.decide != nil {
		return f.decide(q)
	}
	return f.decision, f.err
}

// Take grants what is asked for.
func (f *fakeNode) Take(_ context.Context, t admit.Take) (admit.Taken, error) {
	if f.fault != nil {
		panic(f.fault)
	}
	if err := t.Validate(); err != nil {
		return admit.Taken{}, err
	}
	f.mu.Lock()
	f.taken = append(f.taken, t)
	f.mu.Unlock()
	return admit.Taken{Units: t.Units, Decision: f.decision, SpendWithin: time.Second,
		Receipt: aReceipt}, f.err
}

// GiveBack has the outcome of a refund.
func (f *fakeNode) GiveBack(ctx context.Context, receipt string,
	_ quantity.Units) (admit.Refunded, error) {
	return f.Refund(ctx, receipt)
}

func (f *fakeNode) Status() region.Status { return f.status }

func (f *fakeNode) Bucket(_ context.Context, limit, domain string,
	descriptors map[string]string) (region.Bucket, error) {
	if f.fault != nil {
		panic(f.fault)
	}
	if err := (admit.Request{Domain: domain, Descriptors: descriptors,
		Cost: 1}).Validate(); err != nil {
		return region.Bucket{}, err
	}
	if limit != "account-minute" {
		return region.Bucket{}, rules.ErrNoSuchBucket
	}
	if f.bucket != nil {
		return f.bucket(descriptors)
	}
	return aBucket(), f.err
}

// aReceipt is the only receipt that a fakeNode refunds.
const aReceipt = "-Rc_9"

func (f *fakeNode) Refund(_ context.Context, receipt string) (admit.Refunded, error) {
	switch {
	case f.fault != nil:
		panic(f.fault)
	case receipt != aReceipt:
		return admit.Refunded{}, &admit.FieldError{Field: "receipt",
			Problem: "is none; send the receipt of a decision as it was given"}
	}
	return f.refunded, f.err
}

// Receipt knows aReceipt, which is about one bucket.
func (f *fakeNode) Receipt(receipt string) ([]policy.BucketRef, error) {
	if receipt != aReceipt {
		return nil, &admit.FieldError{Field: "receipt",
			Problem: "is none; send the receipt of a decision as it was given"}
	}
	return []policy.BucketRef{{Domain: "api", Name: "account-minute",
		Key: []policy.KeyValue{{Name: "account", Value: "42"}}}}, nil
}

func (f *fakeNode) Reset(ctx context.Context, limit, domain string,
	descriptors map[string]string) (quantity.Units, error) {
	b, err := f.Bucket(ctx, limit, domain, descriptors)
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reset = append(f.reset, descriptors)
	return b.Inspected.Used, nil
}

func (f *fakeNode) Recovering() []region.Recovering { return f.status.Recovering }

func (f *fakeNode) Waive(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waived++
	return nil
}

func (f *fakeNode) Ready() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.notReady
}

func (f *fakeNode) setReady(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notReady = err
}

func (f *fakeNode) asked() (checked, peeked int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.checked), len(f.peeked)
}

func (f *fakeNode) Metrics() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "quotad_fake_total",
		Help: "A number of the node's."}))
	return r
}

func (f *fakeNode) CountPanic(where string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.panics = append(f.panics, where)
}

// allowed is a decision of a limit that admits.
func allowed() admit.Decision {
	return admit.Decision{Allowed: true, Reason: admit.WithinLimit, Limit: "account-minute",
		Algorithm: algorithms.FixedWindow, LimitUnits: 1000,
		Window: time.Minute, Remaining: 57, ResetAfter: 10*time.Second + 250*time.Microsecond,
		Cell: 29394720,
		At:   1763683189999750, Node: "n1", Region: "us-east", Entitlement: 400, Share: 425,
		Sequence: 7}
}

// with changes a decision.
func with(d admit.Decision, change func(*admit.Decision)) admit.Decision {
	change(&d)
	return d
}

// denied is a decision of a limit that denies.
func denied() admit.Decision {
	return with(allowed(), func(d *admit.Decision) {
		d.Allowed, d.Reason, d.Remaining, d.RetryAfter = false, admit.OverLimit, 0,
			10*time.Second+250*time.Microsecond
	})
}

// undecided is a decision for which neither store nor node counted.
func undecided(reason admit.Reason) admit.Decision {
	return admit.Decision{Allowed: reason == admit.StoreFailureAllowed, Reason: reason,
		Limit: "account-minute", Algorithm: algorithms.FixedWindow,
		LimitUnits: 1000, Window: time.Minute, Node: "n1", Region: "us-east", Entitlement: 400,
		Sequence: 8, Degraded: true}
}

func aBucket() region.Bucket {
	return region.Bucket{Limit: &policy.Limit{Name: "account-minute", Limit: 1000},
		Terms: algorithms.Terms{Kind: algorithms.FixedWindow, Entitlement: 400},
		Inspected: algorithms.Inspected{State: algorithms.State{Cell: 5, Used: 31, Share: 425,
			NextShare: 400, Fading: 31, Free: 394}, Rows: []algorithms.PeerRow{
			{Cell: 5, Peer: "ap-south", Row: algorithms.Row{Lent: 1, Returned: 2, Borrowed: 3,
				Regained: 4}},
			{Cell: 5, Peer: "eu-west", Row: algorithms.Row{Borrowed: 23}}}}}
}

// aTokenBucket is a bucket of the kind whose burst is lent.
func aTokenBucket() region.Bucket {
	b := aBucket()
	b.Terms.Kind, b.Terms.Burst = algorithms.TokenBucket, 80
	b.Inspected.Fading = 0
	b.Inspected.Rows = []algorithms.PeerRow{{Cell: 5, Peer: "eu-west",
		Row: algorithms.Row{BurstLent: 6, BurstBorrowed: 7}}}
	return b
}

func aStatus() region.Status {
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

// quiet is a log that writes nothing.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// newServer returns a server that is closed at the end of the test.
func newServer(t testing.TB, n Node, log *slog.Logger) *Server {
	t.Helper()
	s := New(n, log, Options{})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// CheckLists decides a request with lists as one.
func (f *fakeNode) CheckLists(ctx context.Context, q admit.Request) ([]admit.Decision, error) {
	d, err := f.Check(ctx, q)
	return []admit.Decision{d}, err
}

func (f *fakeNode) RefundLast(context.Context, string, admit.List) (admit.Refunded, error) {
	return f.refunded, f.err
}

func (f *fakeNode) Buckets(domain string, list admit.List) []policy.BucketRef {
	return []policy.BucketRef{{Domain: domain, Name: "account-minute", Key: list.Entries}}
}
