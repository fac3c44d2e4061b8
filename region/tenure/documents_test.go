package tenure

import (
	"log/slog"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/policy/barrier"
)

// TestAnAcknowledgementWaitsForTheDocumentsBeside: a region that works under a document that is not
// known here may be given more by it, so what it acknowledges counts only when that is known.
func TestAnAcknowledgementWaitsForTheDocumentsBeside(t *testing.T) {
	regions := []string{"us: {weight: 1}", "eu: {weight: 1}"}
	const limit = "name: l, window: 1s, limit: "
	one, two, three := documents.Parse(t, 1, regions, limit+"100"),
		documents.Parse(t, 2, regions, limit+"200"), documents.Parse(t, 3, regions, limit+"150")
	k := newKnowledge("us", slog.New(slog.DiscardHandler), time.Now)
	here := barrier.Union(one, three)
	k.hear(here, "eu", []Told{{one.Epoch(), 1}, {two.Epoch(), 2}, {three.Epoch(), 3}})
	if len(k.heard["eu"]) != 0 {
		t.Errorf("counted: %v", k.heard)
	}
	wanted, _, _ := k.take()
	if len(wanted) != 1 || wanted[two.Epoch()] != "eu" {
		t.Errorf("wanted: %v", wanted)
	}
	k.hear(barrier.Union(one, two, three), "eu", []Told{{two.Epoch(), 2}, {three.Epoch(), 3}})
	if at, known := k.heard["eu"][three.Epoch()]; !known || at != 3 {
		t.Errorf("not counted: %v", k.heard)
	}
}
