package envoys

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/rules"
)

// mute is a store that answers nothing, and the rules of a document.
type mute struct{ rules *rules.Rules }

func (m mute) Rules() *rules.Rules { return m.rules }

func (mute) Exists(*exchange.Bucket) quantity.StoreTime { return 0 }

func (mute) ObserveEnvoys(*exchange.Bucket, quantity.MilliRate, quantity.MilliRate) {}

func (mute) Allotments() map[string]quantity.Units { return nil }

func (mute) Charge(context.Context, *rules.Rules, *rules.Applied, quantity.Units) bool { return false }

func (mute) Assign(_ context.Context, _ []*exchange.Bucket,
	calls []algorithms.Assign) []algorithms.Assigned {
	all := make([]algorithms.Assigned, len(calls))
	for i := range all {
		all[i].Status = algorithms.StatusUnknown
	}
	return all
}

// newAssigner returns one of a document whose domain api has the assignable limit of an account.
// Its clock stands still.
func newAssigner(t testing.TB) *Assigner {
	t.Helper()
	d, err := policy.Parse("limits.yaml", []byte("version: 1\nregions: {here: {weight: 1}}\nlimits:\n"+
		"  - {name: a, domain: api, key: [account], algorithm: token_bucket, limit: 1000, window: 1s, burst: 1000, assign: {}}\n"))
	suite.Must(t, err)
	s := mute{rules.New(barrier.Only(d, "here"), nil)}
	return New(Config{Node: "n1", Nodes: 1, Rules: s, Rights: s, Limiter: s,
		Now: func() time.Time { return time.Unix(1_800_000_000, 0) }, Elapsed: func() time.Duration { return 0 }})
}

func opened(t testing.TB, a *Assigner) *Stream {
	t.Helper()
	s, err := a.Open("api")
	suite.Must(t, err)
	return s
}

func usagesOf(name string, from, n int) (all []Usage) {
	for i := range n {
		all = append(all, Usage{ID: map[string]string{name: fmt.Sprint(from + i)}})
	}
	return all
}

// TestUnreadIsBounded: an Envoy that reports ever other bucket ids and reads no answer does not
// fill the node's memory. What it did not hear it is told when it reports that again.
func TestUnreadIsBounded(t *testing.T) {
	s := opened(t, newAssigner(t))
	for i := range 100 {
		s.Report(usagesOf("other", 100*i, 100))
		s.Report(usagesOf("account", 100*i, 100))
	}
	if len(s.waiting) != maxWaiting || len(s.order) != maxWaiting || len(s.ids) != MaxBuckets {
		t.Errorf("%d wait, in an order of %d, and %d ids are known", len(s.waiting), len(s.order),
			len(s.ids))
	}
	told := 0
	for all := s.Take(); len(all) > 0; all = s.Take() {
		if told += len(all); len(all) > maxTogether {
			t.Errorf("%d are told together", len(all))
		}
	}
	if told != maxWaiting || len(s.waiting) != 0 {
		t.Errorf("%d were told, and %d wait", told, len(s.waiting))
	}
	s.Report(usagesOf("other", 9999, 1))
	if all := s.Take(); len(all) != 1 || !all[0].Abandon || all[0].ID["other"] != "9999" {
		t.Errorf("then it is told %v", all)
	}
}

// TestReportsAfterTheEnd: a report that was read while its stream was closed changes nothing.
func TestReportsAfterTheEnd(t *testing.T) {
	a := newAssigner(t)
	s := opened(t, a)
	s.Report(usagesOf("account", 0, 3))
	a.CarryOut(t.Context(), a.Step())
	if got := a.Stats(); got.Streams != 1 || got.Shares != 3 {
		t.Errorf("%+v", got)
	}
	s.Close()
	s.Report(usagesOf("account", 0, 5))
	if got := a.Stats(); got.Streams != 0 || got.Shares != 0 || len(a.streams) != 0 {
		t.Errorf("after its end %+v", got)
	}
}

// TestTheSameIDTwice: a report may name a bucket id twice, also beyond the bound.
func TestTheSameIDTwice(t *testing.T) {
	a := newAssigner(t)
	s := opened(t, a)
	all := usagesOf("account", 0, MaxBuckets+1)
	s.Report(append(all, all...))
	if len(s.ids) != MaxBuckets || len(s.fresh) != MaxBuckets {
		t.Errorf("%d ids, and %d of them new", len(s.ids), len(s.fresh))
	}
	if told := s.Take(); len(told) != 1 || !told[0].Abandon || told[0].ID["account"] != fmt.Sprint(MaxBuckets) {
		t.Errorf("it is told %v", told)
	}
}

// TestRefusedIsNotKept: a bucket id for which there is no room does not take the place of a bucket that
// the node has in memory.
func TestRefusedIsNotKept(t *testing.T) {
	a := newAssigner(t)
	s := opened(t, a)
	s.Report(usagesOf("account", 0, MaxBuckets))
	s.Report(usagesOf("account", MaxBuckets, 1))
	current := a.config.Rules.Rules()
	for i, want := range map[int]bool{0: true, MaxBuckets: false} {
		limits := current.Document.Limits
		id := string(limits[0].Bucket(map[string]string{"account": fmt.Sprint(i)}))
		if is := current.Found(id) != nil; is != want {
			t.Errorf("%s is kept: %v", id, is)
		}
	}
	if told := s.Take(); len(told) != 1 || !told[0].Abandon {
		t.Errorf("it is told %v", told)
	}
}

// TestDrainedAtOnce: many streams may have an assigner drain.
func TestDrainedAtOnce(t *testing.T) {
	a := newAssigner(t)
	opened(t, a)
	a.Drain()
	a.Drain()
	if _, err := a.Open("api"); err == nil {
		t.Error("a stream begins at a node that ends")
	}
}

// BenchmarkReportAboveTheBound reports as many new bucket ids as a message has room for.
func BenchmarkReportAboveTheBound(b *testing.B) {
	a := newAssigner(b)
	all := usagesOf("account", 0, 25_000)
	for b.Loop() {
		s := opened(b, a)
		s.Report(all)
		s.Close()
	}
}

// TestIDsAreBounded: a bucket id has so many bytes, and all ids of all streams so many together. When
// ids are left and streams end there is room again.
func TestIDsAreBounded(t *testing.T) {
	a := newAssigner(t)
	long := func(stream, i, n int) Usage {
		id := map[string]string{"account": fmt.Sprint(1000*stream + i)}
		for name := range 5 {
			id[fmt.Sprint("more", name)] = strings.Repeat("x", n/5)
		}
		return Usage{ID: id}
	}
	s := opened(t, a)
	s.Report([]Usage{long(0, 0, MaxIDBytes)})
	s.Take()
	if len(s.ids) != 0 || a.idBytes != 0 {
		t.Errorf("%d ids, %d bytes: an id of more than %d bytes is taken", len(s.ids), a.idBytes, MaxIDBytes)
	}
	s.Close()
	var all []*Stream
	const large = 900
	for n := range 20 {
		s := opened(t, a)
		all = append(all, s)
		for i := range MaxBuckets {
			s.Report([]Usage{long(n, i, large)})
		}
	}
	if a.idBytes > MaxAllIDBytes || a.idBytes < MaxAllIDBytes-MaxIDBytes {
		t.Errorf("%d bytes of ids, of %d", a.idBytes, MaxAllIDBytes)
	}
	all[0].Close()
	last := all[len(all)-1]
	if last.Report([]Usage{long(99, 1, large)}); len(last.ids) != 1 {
		t.Errorf("%d ids after another stream has ended", len(last.ids))
	}
	for _, s := range all[1:] {
		s.Close()
	}
	if a.idBytes != 0 {
		t.Errorf("%d bytes of no stream", a.idBytes)
	}
}

// TestUnreadIDsAreBounded: Envoys that report large ids to which nothing is assigned, and read no
// answer, fill no more than the room for all ids. What they read makes room again.
func TestUnreadIDsAreBounded(t *testing.T) {
	a := newAssigner(t)
	var all []*Stream
	for n := range 30 {
		s := opened(t, a)
		all = append(all, s)
		for i := range 2 * MaxBuckets {
			id := map[string]string{"other": strings.Repeat("x", MaxIDBytes) + fmt.Sprint(n, i)}
			s.Report([]Usage{{ID: id}, {ID: id}})
		}
	}
	if a.idBytes > MaxAllIDBytes || a.idBytes < MaxAllIDBytes*9/10 {
		t.Errorf("%d bytes of ids wait, of %d", a.idBytes, MaxAllIDBytes)
	}
	if all[0].Close(); len(all[0].Take()) != 0 {
		t.Error("something is sent on a stream that is over")
	}
	for _, s := range all[1:] {
		for told := s.Take(); len(told) > 0; told = s.Take() {
			if len(told) > maxTogetherBytes/MaxIDBytes {
				t.Fatalf("%d ids of %d bytes are told together", len(told), MaxIDBytes)
			}
		}
	}
	if a.idBytes != 0 {
		t.Errorf("%d bytes are held when all was read", a.idBytes)
	}
}

// TestKeysOfIDs: the key of a bucket id is that of no other one, and says what the id was.
func TestKeysOfIDs(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		ids := rapid.MapOf(rapid.String(), rapid.String())
		keyOf := func(id map[string]string) string { return string(appendKey(nil, id)) }
		one, other := ids.Draw(t, "one"), ids.Draw(t, "other")
		if got := idOf(keyOf(one)); !maps.Equal(got, one) {
			t.Fatalf("%q became %q", one, got)
		}
		if keyOf(one) == keyOf(other) && !maps.Equal(one, other) {
			t.Fatalf("%q and %q have one key", one, other)
		}
	})
}

// generous is a store that gives all that is asked for.
type generous struct {
	mute
	elapsed func() time.Duration
}

func (generous) Charge(context.Context, *rules.Rules, *rules.Applied, quantity.Units) bool {
	return true
}

// now is the store's time, which goes on as the assigner's.
func (g generous) now() quantity.StoreTime {
	return quantity.StoreTime(time.Unix(1_800_000_000, 0).Add(g.elapsed()).UnixMicro())
}

func (g generous) Assign(_ context.Context, _ []*exchange.Bucket, calls []algorithms.Assign) []algorithms.Assigned {
	all := make([]algorithms.Assigned, len(calls))
	for i, c := range calls {
		all[i].Status, all[i].Now = algorithms.StatusOK, g.now()
		all[i].Held, all[i].Returned = max(c.Held, c.Known), c.Returned
	}
	return all
}

// TestWhatWasNotSentWasNotAssigned: an assignment that waited for too long is not sent. The Envoy still
// has the one before, and is told anew at once.
func TestWhatWasNotSentWasNotAssigned(t *testing.T) {
	a, at := newAssigner(t), time.Second
	elapsed := func() time.Duration { return at }
	store := generous{a.config.Rights.(mute), elapsed}
	a.config.Rights, a.config.Limiter, a.config.Elapsed = store, store, elapsed
	a.config.Now = func() time.Time { return time.Unix(1_800_000_000, 0).Add(at) }
	s := opened(t, a)
	step := func() {
		at += 100 * time.Millisecond
		a.CarryOut(t.Context(), a.Step())
	}
	var has Assignment // the Envoy
	take := func(steps int) {
		for range steps {
			step()
			for _, one := range s.Take() {
				has = one
			}
		}
	}
	report := func(each, elapsed int64) {
		s.Report([]Usage{{ID: map[string]string{"account": "7"}, Allowed: uint64(each * elapsed), Elapsed: elapsed}})
	}
	report(1, 0)
	for range 4 { // until its demand is known
		take(50)
		report(400, 5)
	}
	take(50)
	before := has
	if before.Rate < 400 {
		t.Fatalf("it is assigned %+v", before)
	}
	report(20, 5)
	for tries := 0; len(s.order) == 0; tries++ {
		if step(); tries > 20 {
			t.Fatal("it is to be told nothing new")
		}
	}
	at += sendWithin + time.Millisecond
	if all := s.Take(); len(all) != 0 {
		t.Fatalf("after %v it is told %v", sendWithin, all)
	}
	take(3)
	if has.Rate >= before.Rate/2 {
		t.Errorf("it still has %+v", has)
	}
}
