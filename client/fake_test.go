package client_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/client"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// fakeNode is a connection to a node with one bucket, which counts what it charges.
type fakeNode struct {
	takeError error // of each Take; nil: it is answered
	givesNone bool
	delay     time.Duration // of each Take and Settle
	within    time.Duration // spend_within
	retry     time.Duration // of a denial

	mu      sync.Mutex
	free    int64
	checks  int
	takes   []*quotadv1.TakeRequest
	tookAt  []time.Time      // when the Takes came
	granted map[string]int64 // by receipt: units charged and not yet asked back
	wrong   []error          // what no node would take
}

// newFake returns a node whose bucket has so many units.
func newFake(units int64) *fakeNode {
	return &fakeNode{free: units, within: time.Second, retry: time.Minute,
		granted: map[string]int64{}}
}

// Invoke implements grpc.ClientConnInterface.
func (f *fakeNode) Invoke(ctx context.Context, _ string, args, reply any,
	_ ...grpc.CallOption) error {
	var answer proto.Message
	var err error
	switch m := args.(type) {
	case *quotadv1.CheckRequest:
		answer = f.check(m.GetCost())
	case *quotadv1.CheckBatchRequest:
		batch := &quotadv1.CheckBatchResponse{}
		for _, one := range m.Requests {
			batch.Decisions = append(batch.Decisions, f.check(one.GetCost()).Decision)
		}
		answer = batch
	case *quotadv1.TakeRequest:
		answer, err = f.take(ctx, m)
	case *quotadv1.SettleRequest:
		answer, err = f.settle(ctx, m)
	}
	if err == nil {
		proto.Merge(reply.(proto.Message), answer)
	}
	return err
}

// NewStream implements grpc.ClientConnInterface.
func (*fakeNode) NewStream(context.Context, *grpc.StreamDesc, string,
	...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.New("there are no streams")
}

func (f *fakeNode) decision(allowed bool) *quotadv1.Decision {
	d := &quotadv1.Decision{Allowed: allowed, Limit: "account", LimitUnits: 1 << 50,
		Entitlement: 1 << 50, Share: 1 << 50, Remaining: f.free, Cell: 7, Node: "n1",
		AtUs: time.Now().UnixMicro(), Reason: quotadv1.Reason_REASON_WITHIN_LIMIT,
		ResetAfter: durationpb.New(time.Minute)}
	if !allowed {
		d.Reason, d.RetryAfter = quotadv1.Reason_REASON_OVER_LIMIT, durationpb.New(f.retry)
	}
	return d
}

func (f *fakeNode) check(cost int64) *quotadv1.CheckResponse {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checks++
	allowed := cost <= f.free
	if allowed {
		f.free -= cost
	}
	return &quotadv1.CheckResponse{Decision: f.decision(allowed)}
}

// waits takes the time of a call.
func (f *fakeNode) waits(ctx context.Context) error {
	f.mu.Lock()
	delay := f.delay
	f.mu.Unlock()
	if delay == 0 {
		return nil
	}
	select {
	case <-time.After(delay):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fakeNode) take(ctx context.Context, m *quotadv1.TakeRequest) (*quotadv1.TakeResponse,
	error) {
	f.mu.Lock()
	f.takes, f.tookAt = append(f.takes, m), append(f.tookAt, time.Now())
	units := min(m.Units, f.free/4)
	if f.takeError != nil || f.givesNone || units < 8 {
		f.mu.Unlock()
		return &quotadv1.TakeResponse{}, f.takeError
	}
	f.free -= units
	receipt := fmt.Sprint("qr1_", len(f.takes))
	f.granted[receipt] = units
	r := &quotadv1.TakeResponse{Units: units, Decision: f.decision(true),
		SpendWithin: durationpb.New(f.within), Receipt: receipt}
	f.mu.Unlock()
	return r, f.waits(ctx)
}

func (f *fakeNode) settle(ctx context.Context,
	m *quotadv1.SettleRequest) (*quotadv1.SettleResponse, error) {
	if err := f.waits(ctx); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	granted, known := f.granted[m.Receipt]
	delete(f.granted, m.Receipt)
	if !known || m.Used == nil || m.GetUsed() < 0 || m.GetUsed() >= granted {
		f.wrong = append(f.wrong, fmt.Errorf("%d used of receipt %q for %d", m.GetUsed(), m.Receipt, granted))
	}
	f.free += granted - m.GetUsed()
	return &quotadv1.SettleResponse{Used: m.GetUsed(), Settled: []*quotadv1.Settled{{Limit: "account",
		Back: granted - m.GetUsed()}}}, nil
}

// delays has the Takes and Settles to come take so long.
func (f *fakeNode) delays(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delay = d
}

func (f *fakeNode) count() (checks, takes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.checks, len(f.takes)
}

// allow decides a request.
func allow(t testing.TB, b *client.Bucket, cost int64) client.Decision {
	t.Helper()
	d, err := b.Allow(context.Background(), cost)
	suite.Must(t, err)
	return d
}

// closed closes a client that must have given back all that it held, and returns its totals.
func closed(t testing.TB, c *client.Client) client.Stats {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	return wantSettled(t, c)
}

// refusing is a connection whose every call is refused.
type refusing struct{ *fakeNode }

// Invoke implements grpc.ClientConnInterface.
func (refusing) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return status.Error(codes.InvalidArgument, "domain: is missing")
}

// denied is how many units clients reported to have denied.
func (f *fakeNode) denied() (units int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.takes {
		units += m.Denied
	}
	return units
}
