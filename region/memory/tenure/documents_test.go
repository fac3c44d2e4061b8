package tenure

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/journals"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/store"
)

// TestAnAcknowledgementWaitsForTheDocumentsBeside: a region that works under a document that is not
// known here may be given more by it, so what it acknowledges counts only when that is known.
func TestAnAcknowledgementWaitsForTheDocumentsBeside(t *testing.T) {
	regions := []string{"us: {weight: 1}", "eu: {weight: 1}"}
	const limit = "name: l, window: 1s, limit: "
	one, two, three := documents.Parse(t, 1, regions, limit+"100"),
		documents.Parse(t, 2, regions, limit+"200"), documents.Parse(t, 3, regions, limit+"150")
	k := newKnowledge("us", slog.New(slog.DiscardHandler), time.Now)
	here := open(t, one, three)
	k.hear(here, "eu", []Told{{Epoch: one.Epoch(), At: 1}, {Epoch: two.Epoch(), At: 2}, {Epoch: three.Epoch(), At: 3}})
	if len(k.heard["eu"]) != 0 {
		t.Errorf("counted: %v", k.heard)
	}
	wanted, _, _ := k.take()
	if len(wanted) != 1 || wanted[two.Epoch()] != "eu" {
		t.Errorf("wanted: %v", wanted)
	}
	k.hear(open(t, one, two, three), "eu", []Told{{Epoch: two.Epoch(), At: 2}, {Epoch: three.Epoch(), At: 3}})
	if at, known := k.heard["eu"][three.Epoch()]; !known || at != 3 {
		t.Errorf("not counted: %v", k.heard)
	}
}

// TestALossKeepsWhatIsOpen: a store that lost its data is opened under all documents that were open
// in it, whether the node ran meanwhile or was started anew with the oldest in its file.
func TestALossKeepsWhatIsOpen(t *testing.T) {
	regions := []string{"us: {weight: 1}", "eu: {weight: 1}"}
	one := documents.Parse(t, 1, regions, "name: l, window: 1s, limit: 100")
	two := documents.Parse(t, 2, regions, "name: l, window: 1s, limit: 200, weights: {us: 1, eu: 9}")
	now := time.Unix(1_800_000_000, 0)
	clock := func() time.Time { return now }
	server := lab.NewTwin(func() quantity.StoreTime { return quantity.StoreTime(now.UnixMicro()) }, "a")
	kept, disk, err := journals.New("us", "n1")
	suite.Must(t, err)
	way, _ := server.Connect(clock)
	n := of(t, "n1", one, way, kept, clock)
	suite.Must(t, n.Open(t.Context()))
	suite.Must(t, n.Adopt(t.Context(), two))
	want := one.Epoch().String() + "+" + two.Epoch().String()
	if got := n.Rules().Epoch; got != want || len(n.Statement()) != 2 {
		t.Fatalf("open: %s, told: %v", got, n.Statement())
	}
	server.Restart()
	now = now.Add(time.Second)
	if err := n.OpenOnce(t.Context()); err != nil || n.Losses() != 1 || n.Rules().Epoch != want {
		t.Errorf("after a loss: %s, %v", n.Rules().Epoch, err)
	}
	kept, err = journals.Open(disk, "us", "n1")
	suite.Must(t, err)
	server.Restart()
	way, _ = server.Connect(clock)
	again := of(t, "n1", one, way, kept, clock)
	again.config.Bootstrap = false
	if err := again.Open(t.Context()); err != nil || again.Rules().Epoch != want {
		t.Errorf("after a loss, and started anew: %s, %v", again.Rules().Epoch, err)
	}
}

// TestADocumentThatLeavesOutThisRegion, by a slip, is told by another region. It is fetched once, and
// not taken, which the status shows, until a newer one knows all regions.
func TestADocumentThatLeavesOutThisRegion(t *testing.T) {
	const limit = "name: l, window: 1s, limit: 100"
	us, eu, typo := "us: {weight: 1}", "eu: {weight: 1}", "su: {weight: 1}"
	one, slip := documents.Parse(t, 1, []string{us, eu}, limit), documents.Parse(t, 2, []string{typo, eu}, limit)
	mended := documents.With(t, "removed: [su]", documents.Parse(t, 3, []string{us, eu}, limit))
	now := time.Unix(1_800_000_000, 0)
	clock := func() time.Time { return now }
	way, _ := lab.NewTwin(func() quantity.StoreTime { return quantity.StoreTime(now.UnixMicro()) }, "a").Connect(clock)
	kept, _, err := journals.New("us", "n1")
	suite.Must(t, err)
	n := of(t, "n1", one, way, kept, clock)
	fetched := map[policy.Epoch]int{}
	n.config.Fetch = func(_ context.Context, _ string, e policy.Epoch) ([]byte, error) {
		fetched[e]++
		for _, d := range []*policy.Document{slip, mended} {
			if d.Epoch() == e {
				return d.Source(), nil
			}
		}
		return []byte("no document"), nil
	}
	suite.Must(t, n.Open(t.Context()))
	hear := func(all ...policy.Epoch) string {
		t.Helper()
		var open []Told
		for _, e := range all {
			open = append(open, Told{Epoch: e, At: 1})
		}
		for range 3 {
			n.Hear("eu", open)
			n.Review(t.Context())
		}
		if refused := n.known.told["eu"].Refused; refused != nil {
			return refused.Error()
		}
		return ""
	}
	if got := hear(slip.Epoch()); !strings.Contains(got, `has region "us"`) || n.Rules().Document != one || fetched[slip.Epoch()] != 1 {
		t.Errorf("open: %s, fetched %d times, refused: %s", n.Rules().Epoch, fetched[slip.Epoch()], got)
	}
	other := policy.Epoch{Version: 7}
	if got := hear(other); got != "" || fetched[other] != 3 {
		t.Errorf("what another node may have: fetched %d times, refused: %s", fetched[other], got)
	}
	if got := hear(slip.Epoch(), mended.Epoch()); got != "" || n.Rules().Newest != mended.Epoch().String() || fetched[slip.Epoch()] > 3 {
		t.Errorf("mended: %s is open, fetched %d times, refused: %s", n.Rules().Epoch, fetched[slip.Epoch()], got)
	}
	if hear(mended.Epoch()); len(n.known.refused) != 0 {
		t.Errorf("still noted: %v", n.known.refused)
	}
}

// TestAMateWithoutTheDocument: a region tells a document, and the node of it that is asked does not
// have it yet. It is asked again, and the document is taken.
func TestAMateWithoutTheDocument(t *testing.T) {
	const limit = "name: l, window: 1s, limit: "
	both := []string{"us: {weight: 1}", "eu: {weight: 1}"}
	one, two := documents.Parse(t, 1, both, limit+"100"), documents.Parse(t, 2, both, limit+"200")
	now := time.Unix(1_800_000_000, 0)
	clock := func() time.Time { return now }
	way, _ := lab.NewTwin(func() quantity.StoreTime { return quantity.StoreTime(now.UnixMicro()) }, "a").Connect(clock)
	kept, _, err := journals.New("us", "n1")
	suite.Must(t, err)
	n := of(t, "n1", one, way, kept, clock)
	answers := [][]byte{nil, one.Source(), two.Source()} // nothing, and what another build might say
	n.config.Fetch = func(context.Context, string, policy.Epoch) (text []byte, _ error) {
		text, answers = answers[0], answers[1:]
		return text, nil
	}
	suite.Must(t, n.Open(t.Context()))
	for range 3 {
		n.Hear("eu", []Told{{Epoch: two.Epoch(), At: 1}})
		n.Review(t.Context())
	}
	if got := n.Rules().Newest; got != two.Epoch().String() {
		t.Errorf("%s is the newest", got)
	}
}

// TestAFarVersionInTheFile of a node that knows another document is passed over.
func TestAFarVersionInTheFile(t *testing.T) {
	const limit = "name: l, window: 1s, limit: 100"
	one, far := documents.Parse(t, 1, alone, limit), documents.Parse(t, policy.MaxVersion, alone, limit)
	now := time.Unix(1_800_000_000, 0)
	clock := func() time.Time { return now }
	server := lab.NewTwin(func() quantity.StoreTime { return quantity.StoreTime(now.UnixMicro()) }, "a")
	for node, c := range map[string]struct {
		file *policy.Document
		want error
	}{"n1": {one, nil}, "n2": {far, policy.ErrFar}} {
		kept, _, err := journals.New("us", node)
		suite.Must(t, err)
		if node == "n2" {
			kept.SaveDocuments([]journal.Document{{Version: 1, Source: one.Source()}})
		}
		way, _ := server.Connect(clock)
		n := of(t, node, c.file, way, kept, clock)
		suite.Must(t, n.Open(t.Context()))
		if err := n.FileRefused(); !errors.Is(err, c.want) || n.Rules().Document.Version != 1 {
			t.Errorf("%s: %s is open, the file: %v", node, n.Rules().Epoch, err)
		}
	}
}

// TestARegionIsOpenedWithTheTextsOfItsDocuments: a node begins its region's first generation, under
// documents that it has fetched from other regions, and dies at any round trip of that. Its mate,
// whose file is of another version, starts all the same: nothing else in the region has the texts.
func TestARegionIsOpenedWithTheTextsOfItsDocuments(t *testing.T) {
	const limit = "name: l, window: 1s, limit: "
	one, two := documents.Parse(t, 1, alone, limit+"100"), documents.Parse(t, 2, alone, limit+"200")
	named := 0
	for trip := range 20 {
		v := newVouching(t)
		clock := func() time.Time { return v.now }
		node := func(name string) *Tenure {
			kept, _, err := journals.New("us", name)
			suite.Must(t, err)
			way, _ := v.server.Connect(clock)
			return of(t, name, one, way, kept, clock)
		}
		n := node("n1")
		n.config.MayBegin = func(context.Context, store.Beginning) (store.Told, error) {
			if n.agenda().Has(two.Epoch()) {
				return store.Told{}, nil
			}
			return store.Told{}, &Elsewhere{Documents: []*policy.Document{two}}
		}
		v.server.Spare(trip)
		v.server.FailNext(1000)
		if n.Open(t.Context()) != nil && v.server.Ledger(store.Whole).Generation != 0 {
			named++
		}
		v.server.FailNext(0)
		if err := node("n2").Open(t.Context()); err != nil {
			t.Errorf("dead after round trip %d: %v", trip, err)
		}
	}
	if named == 0 {
		t.Error("no node died after it had named its documents")
	}
}

// TestAMateOpensTheStoreMeanwhile: two nodes of a new region start at once. The second opens the store
// after the first, whose file is of another version, has looked, and before it keeps a text.
func TestAMateOpensTheStoreMeanwhile(t *testing.T) {
	v := newVouching(t)
	clock := func() time.Time { return v.now }
	node := func(name string, d *policy.Document) *Tenure {
		kept, _, err := journals.New("us", name)
		suite.Must(t, err)
		way, _ := v.server.Connect(clock)
		return of(t, name, d, way, kept, clock)
	}
	first, mate := node("n1", documents.Parse(t, 2, alone, "name: long, limit: 200, window: 10m")), node("n2", v.d)
	first.config.MayBegin = func(context.Context, store.Beginning) (store.Told, error) {
		return store.Told{}, mate.Open(t.Context())
	}
	if err := first.Open(t.Context()); err != nil || first.Generation() != mate.Generation() {
		t.Errorf("generation %d, the mate's is %d: %v", first.Generation(), mate.Generation(), err)
	}
}

// open returns the agenda of documents that are open together.
func open(t documents.T, all ...*policy.Document) barrier.Agenda {
	t.Helper()
	a, err := barrier.Union(all...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return a
}
