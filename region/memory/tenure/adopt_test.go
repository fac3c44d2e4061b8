package tenure

import (
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/journals"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

// TestAFenceIsNoOlderThanItsAdoption: a region that was asleep when another one was fenced has
// acknowledged that when it woke, not when its store last answered. Until then the fenced region ran,
// and what it used weighs.
func TestAFenceIsNoOlderThanItsAdoption(t *testing.T) {
	regions := []string{"us: {weight: 1}", "eu: {weight: 1}"}
	const limit = "name: l, window: 1h, limit: 100"
	one := documents.Parse(t, 1, regions, limit)
	two := documents.With(t, "fenced: [eu]", documents.Parse(t, 2, regions, limit))
	now := time.Unix(1_800_000_000, 0)
	clock := func() time.Time { return now }
	way, _ := lab.NewTwin(func() quantity.StoreTime { return quantity.StoreTime(now.UnixMicro()) }, "a").Connect(clock)
	kept, _, err := journals.New("us", "n1")
	suite.Must(t, err)
	n := of(t, "n1", one, way, kept, clock)
	suite.Must(t, n.Open(t.Context()))
	now = now.Add(time.Hour + time.Minute)
	suite.Must(t, n.Adopt(t.Context(), two))
	told := n.Statement()
	if at := told[len(told)-1].At; at < quantity.StoreTime(now.UnixMicro()) {
		t.Errorf("acknowledged %v before it was adopted", time.Duration(quantity.StoreTime(now.UnixMicro()).Sub(at))*time.Microsecond)
	}
	if s := n.Rules().View.Standing(&two.Limits[0]); !s.Open() {
		t.Errorf("the fence counts alone at once: %+v", s)
	}
}

// TestARemovedRegionSaysThatItKnows: a node of a region that its file removes starts, though its journal
// is lost. It serves nothing, and tells that to those who did not hear it before.
func TestARemovedRegionSaysThatItKnows(t *testing.T) {
	const limit = "name: l, window: 1h, limit: 100"
	us, eu := "us: {weight: 1}", "eu: {weight: 1}"
	removed := documents.With(t, "removed: [us]", documents.Parse(t, 2, []string{eu}, limit))
	now := time.Unix(1_800_000_000, 0)
	clock := func() time.Time { return now }
	server := lab.NewTwin(func() quantity.StoreTime { return quantity.StoreTime(now.UnixMicro()) }, "a")
	node := func(d *policy.Document) *Tenure {
		kept, _, err := journals.New("us", "n1")
		suite.Must(t, err)
		way, _ := server.Connect(clock)
		return of(t, "n1", d, way, kept, clock)
	}
	if err := node(documents.Parse(t, 1, []string{us, eu}, limit)).Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := node(removed)
	suite.Must(t, n.Open(t.Context()))
	if err := n.Ready(); err == nil || !strings.Contains(err.Error(), `removes region "us"`) {
		t.Errorf("ready: %v", err)
	}
	if told := n.Statement(); len(told) == 0 || told[len(told)-1].Epoch != removed.Epoch() {
		t.Errorf("it tells %+v", told)
	}
}
