package tenure

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/journals"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal"
)

// vouching is several nodes of one region whose journals are files.
type vouching struct {
	t      *testing.T
	now    time.Time
	server *lab.Twin
	d      *policy.Document
	dir    string
	lends  func() // called before a node writes a row; nil: nothing is
}

func newVouching(t *testing.T) *vouching {
	v := &vouching{t: t, now: time.Unix(1_800_000_000, 0), dir: t.TempDir(),
		d: documents.Parse(t, 1, alone, "name: long, limit: 100, window: 10m")}
	v.server = lab.NewTwin(func() quantity.StoreTime {
		return quantity.StoreTime(v.now.UnixMicro())
	}, "a")
	return v
}

// lives starts a node, which opens its journal and the store, and ends it. It returns since when
// the journal was whole then.
func (v *vouching) lives(node string) (since quantity.StoreTime, err error) {
	v.t.Helper()
	j, err := journal.Open(filepath.Join(v.dir, node), journal.Options{Region: "us", Node: node})
	suite.Must(v.t, err)
	defer func() {
		suite.Must(v.t, j.Close())
	}()
	clock := func() time.Time { return v.now }
	way, _ := v.server.Connect(clock)
	n := of(v.t, node, v.d, way, j, clock)
	if err := n.TryRights(v.t.Context()); err != nil {
		return 0, err
	}
	if err := n.Open(v.t.Context()); err != nil {
		return 0, err
	}
	if v.lends != nil {
		v.lends()
	}
	if err := j.Record(v.t.Context(),
		[]journal.Row{{Bucket: "b", Peer: "eu", Cell: quantity.Cell(j.Incarnation()), Lent: 1,
			Generation: n.Generation(),
			Until:      quantity.StoreTime(v.now.UnixMicro() + algorithms.MaxClockStep)}}); err !=
		nil {
		v.t.Fatal(err)
	}
	_ = n.NoteJournal(v.t.Context()) // a slow store may miss it
	return j.WholeSince(), nil
}

// A first start that fails for want of a Redis costs the next start nothing: its journal still
// holds all that was lent.
func TestAJournalIsWholeAfterAFailedFirstStart(t *testing.T) {
	v := newVouching(t)
	v.server.SetDown(true)
	if _, err := v.lives("n1"); err == nil {
		t.Fatal("started without a Redis")
	}
	v.server.SetDown(false)
	for life := range 2 {
		if got, err := v.lives("n1"); err != nil || got != 0 {
			t.Errorf("life %d: whole since %d, want 0; %v", life, got, err)
		}
		v.now = v.now.Add(bootstrapped + time.Minute)
	}
}

// A reply that comes too late while a node starts costs its journal nothing, whichever reply it is:
// the node tries again, and finds in the store what it has noted itself.
func TestAJournalIsWholeAfterASlowStart(t *testing.T) {
	for name, slow := range map[string]func(*lab.Twin){
		"fails": func(s *lab.Twin) { s.FailNext(1) },
		"late":  func(s *lab.Twin) { s.LoseReply(1) },
	} {
		for trip := range 40 {
			v := newVouching(t)
			for life := range 3 {
				v.server.Spare(trip)
				slow(v.server)
				if got, err := v.lives("n1"); err != nil || got != 0 {
					t.Fatalf("round trip %d %s, life %d: whole since %d, want 0; %v", trip, name, life,
						got, err)
				}
				v.now = v.now.Add(bootstrapped + time.Minute)
			}
		}
	}
}

// TestACopyThatLacksARowIsOld: a journal is put back as it was before its last commit. Opening it, and
// the start, write as many commits and more.
func TestACopyThatLacksARowIsOld(t *testing.T) {
	v := newVouching(t)
	path, copied := filepath.Join(v.dir, "n1"), []byte(nil)
	v.lends = func() {
		var err error
		copied, err = os.ReadFile(path)
		suite.Must(t, err)
	}
	for range 2 {
		if got, err := v.lives("n1"); err != nil || got != 0 {
			t.Fatalf("whole since %d, want 0; %v", got, err)
		}
		v.now = v.now.Add(time.Minute)
	}
	suite.Must(t, os.WriteFile(path, copied, 0o600))
	if got, err := v.lives("n1"); err != nil || got < quantity.StoreTime(v.now.UnixMicro()) {
		t.Errorf("a copy that lacks a row: whole since %d, begun at %d; %v", got, v.now.UnixMicro(), err)
	}
}

// A node with a new journal may have lost an earlier one, even if its settings still say that the
// region starts for the first time.
func TestBootstrapVouchesForTheFirstNodesAlone(t *testing.T) {
	v := newVouching(t)
	if got, err := v.lives("n1"); err != nil || got != 0 {
		t.Errorf("the first: whole since %d, want 0; %v", got, err)
	}
	v.now = v.now.Add(time.Minute)
	if got, err := v.lives("n2"); err != nil || got != 0 {
		t.Errorf("a minute after the first: whole since %d, want 0; %v", got, err)
	}
	v.now = v.now.Add(bootstrapped + time.Minute)
	if got, err := v.lives("n3"); err != nil || got != 0 {
		t.Errorf("of which a store knows nothing that lost nothing: whole since %d; %v", got, err)
	}
	suite.Must(t, os.Remove(filepath.Join(v.dir, "n3")))
	v.now = v.now.Add(time.Minute)
	if got, err := v.lives("n3"); err != nil || got < quantity.StoreTime(v.now.UnixMicro()) {
		t.Errorf("its journal was lost: whole since %d, begun at %d; %v", got, v.now.UnixMicro(), err)
	}
}

// A node that ends as soon as it has started has in its journal which other nodes the store had
// answered, and when last, also if it knew them before: once the store has lost all, nobody else may
// know.
func TestANodeKnowsTheOthersFromItsStartOn(t *testing.T) {
	v := newVouching(t)
	began := map[string]quantity.StoreTime{}
	for _, node := range []string{"n1", "n2", "n1", "n2", "n1"} {
		began[node] = quantity.StoreTime(v.now.UnixMicro())
		if _, err := v.lives(node); err != nil {
			t.Fatal(err)
		}
		v.now = v.now.Add(bootstrapped + time.Minute)
	}
	j, err := journal.Open(filepath.Join(v.dir, "n1"), journal.Options{Region: "us", Node: "n1"})
	suite.Must(t, err)
	defer func() { suite.Must(t, j.Close()) }()
	if other := j.Names()["n2"]; other.Last < began["n2"] {
		t.Errorf("n1 knows %v, and not that n2 was answered at %d", j.Names(), began["n2"])
	}
}

// TestTheStoresTimeOutlivesItAndItsNode: a store's clock is ahead, so far that only decisions show
// the store's time. Then the machine starts anew with the store and the node, and the clock is
// right. The store begins no earlier than any time that it gave out before.
func TestTheStoresTimeOutlivesItAndItsNode(t *testing.T) {
	began := time.Unix(1_800_000_000, 0).UnixMicro()
	now, ahead := began, int64(0)
	server := lab.NewTwin(func() quantity.StoreTime { return quantity.StoreTime(now + ahead) }, "a")
	clock := func() time.Time { return time.UnixMicro(now) }
	kept, disk, err := journals.New("us", "n1")
	suite.Must(t, err)
	start := func(first bool) *Tenure {
		t.Helper()
		way, _ := server.Connect(clock)
		n := of(t, "n1", documents.Parse(t, 1, alone, "name: a, limit: 1000, window: 1s"), way,
			kept, clock)
		n.config.Bootstrap = first
		suite.Must(t, n.Open(t.Context()))
		return n
	}
	n := start(true)
	ahead = 20 * allocator.Second
	var latest quantity.StoreTime
	for range 7 {
		now += allocator.Second / 2
		d, err := n.decide(t, "a")
		if err != nil || d.Now < latest || d.Now == 0 || !d.Answers[0].Admitted {
			t.Fatalf("%+v, %v", d, err)
		}
		latest = d.Now
	}
	kept, err = journals.Open(disk, "us", "n1")
	suite.Must(t, err)
	server.Restart()
	ahead = 0
	n = start(false)
	if got := n.LostAt(); got < latest {
		t.Errorf("lost at %d, and %d was given out: windows come %v earlier once more",
			got.Add(-began), latest.Add(-began), time.Duration(latest.Sub(got))*time.Microsecond)
	}
	if d, err := n.decide(t, "a"); err != nil || d.Answers[0].Admitted {
		t.Errorf("in a window that was used: %+v, %v", d, err)
	}
}

// A generation that a node has begun in its store, while its other parts have not heard of it, is
// opened again: the store answers the node by now, so that nothing else would make it try again.
func TestAGenerationThatIsHalfBegun(t *testing.T) {
	v := newVouching(t)
	j, err := journal.Open(filepath.Join(v.dir, "n1"), journal.Options{Region: "us", Node: "n1"})
	suite.Must(t, err)
	clock := func() time.Time { return v.now }
	way, _ := v.server.Connect(clock)
	n := of(t, "n1", v.d, way, j, clock)
	heard := uint64(0)
	n.config.Changed = func(c Change) { heard = c.Generation }
	suite.Must(t, n.Open(t.Context()), j.Close())
	v.now = v.now.Add(time.Minute)
	first := n.Generation()
	if err := n.EndGeneration(t.Context(), first); err == nil || n.Generation() == first || heard != first {
		t.Fatalf("%v: the store is under generation %d, and the node has heard of %d: the test shows nothing", err, n.Generation(), heard)
	}
	select {
	case <-n.Due():
	default:
		t.Error("nobody opens it again")
	}
}
