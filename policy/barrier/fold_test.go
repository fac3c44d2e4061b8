//go:build !race

package barrier_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/quantity"
)

// editor writes one document after the other: a month's limit, one of a minute, a bucket and one in
// home mode, whose numbers and weights change, that are taken out and put back or get another window.
type editor struct {
	choose  func(n int) int
	version int
	lines   []string
}

var editable = []string{"name: month, window: month, limit: ", "name: minute, window: 1m, limit: ",
	"name: bucket, algorithm: token_bucket, window: 1h, limit: ", "name: home, window: 1h, limit: ", "name: day, window: day, limit: "}

func (e *editor) next(t *testing.T) *policy.Document {
	e.version++
	if e.lines == nil {
		e.lines = make([]string, len(editable))
		for i := range editable {
			e.lines[i] = editable[i] + "600"
		}
		e.lines[3] = editable[3] + "2"
	} else if i := e.choose(len(editable)); e.lines[i] != "" && e.choose(4) == 0 {
		e.lines[i] = ""
	} else if i == 1 && e.choose(3) == 0 {
		e.lines[i] = fmt.Sprintf("name: minute, window: %dm, limit: 500", 1+e.choose(5))
	} else if i == 3 {
		e.lines[i] = editable[i] + fmt.Sprint(1+e.choose(4))
	} else {
		e.lines[i] = editable[i] + fmt.Sprintf("%d, weights: {a: %d, b: %d, c: %d}", 100*(1+e.choose(9)), 1+e.choose(3), e.choose(3), 1+e.choose(3))
	}
	limits := []string{"name: always, domain: elsewhere, window: 1s, limit: 10"}
	for _, l := range e.lines {
		if l != "" {
			limits = append(limits, l)
		}
	}
	return documents.Parse(t, e.version, abc, limits...)
}

// TestFoldingGivesNoMore: a region that folds documents uses of no limit more than one that keeps
// them whole, however they change and whoever acknowledges them. In the end both use what the
// newest document gives.
func TestFoldingGivesNoMore(t *testing.T) {
	suite.Check(t, func(r *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0))
		e := &editor{choose: random.IntN}
		newest := e.next(t)
		whole, folded := barrier.Of(newest), barrier.Of(newest)
		heard, now := barrier.Heard{}, quantity.StoreTime(40*24*time.Hour.Microseconds())
		views := func() (all [2]*barrier.View) {
			for i, a := range []barrier.Agenda{whole, folded} {
				all[i] = &barrier.View{Agenda: a, Region: "a", Heard: heard, Now: now}
			}
			return all
		}
		fold := func() {
			both := views()
			whole, folded = both[0].Folded(1000), both[1].Folded(4)
		}
		acknowledged := func(regions ...string) {
			for _, region := range regions {
				heard.Add(region, newest.Epoch(), now)
			}
		}
		replaced := map[string]bool{} // limits that are charged since they were taken out
		for range 20 {
			before := left(views()[0])
			newest = e.next(t)
			var errs [2]error
			whole, errs[0] = whole.Learn(newest)
			folded, errs[1] = folded.Learn(newest)
			if errs[0] != nil || errs[1] != nil {
				t.Fatalf("%v, %v", errs[0], errs[1])
			}
			gone := left(views()[0])
			for id, charged := range gone {
				if _, had := before[id]; !had {
					replaced[id] = charged
				}
			}
			maps.DeleteFunc(replaced, func(id string, _ bool) bool { return !gone[id] })
			acknowledged("a")
			if random.IntN(2) == 0 {
				acknowledged("b", "c")
			} else if random.IntN(2) == 0 {
				acknowledged("b")
			}
			fold()
			compare(r, views(), random.Uint64(), false)
			for id, charged := range replaced {
				if charged && left(views()[0])[id] && !left(views()[1])[id] {
					r.Fatalf("%s is charged no more", id)
				}
			}
			now = now.Add([]int64{1, 70_000_000, 4_000_000_000, 86_400_000_000, 20 * 86_400_000_000}[random.IntN(5)])
			fold()
			compare(r, views(), random.Uint64(), false)
		}
		acknowledged("b", "c")
		now = now.Add(70 * 86_400_000_000)
		fold()
		compare(r, views(), 0, true)
		if len(folded.Documents()) != 1 || len(whole.Documents()) != 1 {
			r.Errorf("in the end %s and %s are open", whole, folded)
		}
	})
}

// compare fails if the second view gives a region more of some limit than the first, or if they
// should give the same, less.
func compare(r *rapid.T, both [2]*barrier.View, hash uint64, same bool) {
	limits := both[0].Agenda.Newest().Limits
	for i := range limits {
		var parts [2]policy.Part
		for n, v := range both {
			parts[n] = barrier.Least(v.Standing(&limits[i]).Binding, hash)[v.Region]
		}
		if w, f := parts[0], parts[1]; f.Units > w.Units || f.Burst > w.Burst || f.Lendable > w.Lendable || same && f != w {
			r.Fatalf("%s: folded %+v, whole %+v", limits[i].Name, f, w)
		}
	}
}

// left returns whether each limit that was taken out is charged, by its ID.
func left(v *barrier.View) map[string]bool {
	all := map[string]bool{}
	for _, l := range v.Leftovers() {
		all[l.Limit.Name+string(l.Limit.Algorithm)+l.Limit.Window.String()] = l.Charged
	}
	return all
}

// TestEditsHaveNoEnd: under a month's limit that waits for a region that is away, 200 edits are
// taken, and what is open stays small. What another node has of it, it reads as it was written.
func TestEditsHaveNoEnd(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	e := &editor{choose: random.IntN}
	a, heard := barrier.Of(e.next(t)), barrier.Heard{}
	most, bytes := 0, 0
	for n := range 200 {
		d := e.next(t)
		next, err := a.Learn(d)
		if err != nil {
			t.Fatalf("edit %d: %v", n, err)
		}
		heard.Add("a", d.Epoch(), quantity.StoreTime(n+1))
		heard.Add("b", d.Epoch(), quantity.StoreTime(n+1))
		a = (&barrier.View{Agenda: next, Region: "a", Heard: heard, Now: quantity.StoreTime(n + 1)}).Folded(barrier.MaxOpen)
		size := 0
		for _, one := range a.Documents() {
			size += len(one.Source())
			if read, err := policy.ParseOpen("again", one.Source()); err != nil || read.Epoch() != one.Epoch() {
				t.Fatalf("%s is read as %v, %v", one.Epoch(), read, err)
			}
		}
		most, bytes = max(most, len(a.Documents())), max(bytes, size)
	}
	t.Logf("at most %d documents, %d bytes", most, bytes)
	if most > barrier.MaxOpen+barrier.MaxReplaced+1 || a.Kept() == nil {
		t.Errorf("%d documents are open", most)
	}
	fenced := documents.With(t, "fenced: [c]", e.next(t))
	if _, err := a.Learn(fenced); err != nil {
		t.Errorf("a fence: %v", err)
	}
}

// TestWhatReplacesLimitsHasABound: a document that replaces more is refused, a fence never.
func TestWhatReplacesLimitsHasABound(t *testing.T) {
	of := func(version, window int) *policy.Document {
		return documents.Parse(t, version, abc, fmt.Sprintf("name: l, limit: 900, window: %dh", window))
	}
	a := barrier.Of(of(1, 100))
	var err error
	for version := 2; ; version++ {
		next, refused := a.Learn(of(version, 100+version))
		if refused != nil {
			err = refused
			if version != barrier.MaxReplaced+2 {
				t.Errorf("version %d is refused", version)
			}
			break
		}
		a = (&barrier.View{Agenda: next, Region: "a", Heard: barrier.Heard{}, Now: 1}).Folded(4)
	}
	if !barrier.Refused(err) {
		t.Error(err)
	}
	if _, err := a.Learn(documents.With(t, "fenced: [c]", of(1000, 101+barrier.MaxReplaced))); err != nil {
		t.Errorf("a fence: %v", err)
	}
}

// TestALateDocumentDoesNotCountAlone: all have acknowledged a document that is older than one which
// is folded. What that gave binds still.
func TestALateDocumentDoesNotCountAlone(t *testing.T) {
	of := func(version, a int) *policy.Document {
		return documents.Parse(t, version, abc, fmt.Sprintf("name: l, limit: 900, window: 1s, weights: {a: %d, b: 2, c: 3}", a))
	}
	heard, agenda := barrier.Heard{}, barrier.Of(of(1, 1))
	for _, d := range []*policy.Document{of(3, 9), of(4, 4), of(2, 2)} {
		next, err := agenda.Learn(d)
		suite.Must(t, err)
		agenda = next
		if d.Version == 4 {
			agenda = (&barrier.View{Agenda: agenda, Region: "a", Heard: heard, Now: 1}).Folded(1)
		}
	}
	for _, region := range []string{"a", "b", "c"} {
		heard.Add(region, of(2, 2).Epoch(), 1)
	}
	v := &barrier.View{Agenda: agenda, Region: "a", Heard: heard, Now: 100 * second}
	if s := v.Standing(&agenda.Newest().Limits[0]); s.From != 0 || s.Binding[0].Piece == nil {
		t.Errorf("%s: what is folded binds no more: %+v", agenda, s)
	}
}

// TestAFoldedLimitKeepsItsTick: of a limit that only folded documents have, the times depend on the
// largest number that they gave it, as if they were open.
func TestAFoldedLimitKeepsItsTick(t *testing.T) {
	had := documents.Parse(t, 1, abc, "name: l, algorithm: sliding_window_counter, limit: 90000000, window: 1h")
	var gone []*policy.Document
	for version := 2; version < 5; version++ {
		gone = append(gone, documents.Parse(t, version, abc, "name: other, domain: elsewhere, window: 1s, limit: "+fmt.Sprint(version)))
	}
	whole := open(t, had, gone[0], gone[1], gone[2])
	folded := (&barrier.View{Agenda: whole, Region: "a", Heard: barrier.Heard{}, Now: 1}).Folded(1)
	heard := barrier.Heard{}
	for _, region := range []string{"a", "b", "c"} {
		heard.Add(region, gone[2].Epoch(), 5)
	}
	var opens [2]quantity.StoreTime
	for i, a := range []barrier.Agenda{whole, folded} {
		for _, l := range (&barrier.View{Agenda: a, Region: "a", Heard: heard, Now: 6}).Leftovers() {
			opens[i] = l.Standing.Opens
		}
	}
	if folded.Kept() == nil || opens[0] == 0 || opens[0] != opens[1] {
		t.Errorf("whole until %d, folded (%s) until %d", opens[0], folded, opens[1])
	}
}

// TestAnUnsureRegionClosesNothing: it is started with version 1, and hears of version 9, which says the
// same, before it hears that version 5 is in force.
func TestAnUnsureRegionClosesNothing(t *testing.T) {
	of := func(version, a int) *policy.Document {
		return documents.Parse(t, version, abc, fmt.Sprintf("name: l, limit: 900, window: 1s, weights: {a: %d, b: 2, c: 3}", a))
	}
	v := &barrier.View{Agenda: open(t, of(1, 4), of(9, 4)), Region: "a", Heard: barrier.Heard{}, Now: 5}
	if closed := v.Folded(1); len(closed.Documents()) != 1 {
		t.Errorf("%s: two that say the same are open", closed)
	}
	v.Unsure = true
	told, err := v.Folded(1).Learn(of(5, 1))
	if err != nil || len(told.Documents()) != 3 {
		t.Errorf("%s is open, %v", told, err)
	}
}

// TestAMessageNamesFewDocuments however many are open.
func TestAMessageNamesFewDocuments(t *testing.T) {
	a := open(t, documents.Parse(t, 1, abc, "name: l, limit: 900, window: 1s"))
	for version := 2; version <= 30; version++ {
		next, err := a.Learn(documents.Parse(t, version, abc, fmt.Sprintf("name: l, limit: %d, window: 1s", 900+version)))
		suite.Must(t, err)
		a = next
	}
	_, err := a.Learn(documents.Parse(t, 30, abc, "name: l, limit: 1, window: 1s"))
	if !errors.Is(err, barrier.ErrConflict) || len(err.Error()) > 300 || !strings.Contains(err.Error(), "(with 29 more)") {
		t.Errorf("%v", err)
	}
}
