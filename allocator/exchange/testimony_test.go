//go:build !race

package exchange

import (
	"math"
	"slices"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// TestNothingIsRestoredBeforeOnesOwnWord: a node restores nothing before its own journal and memory
// have answered, however long that takes.
func TestNothingIsRestoredBeforeOnesOwnWord(t *testing.T) {
	d := newDoubting(t)
	out := d.loses(d.bucket("b"))
	d.tells("eu", out.questions("eu")...)
	for range 50 {
		if restores := d.tick().Restores; len(restores) > 0 {
			t.Fatalf("restored without our own word: %+v", restores)
		}
	}
	seen := algorithms.Use{Cell: quantity.Cell(d.store() / doubtDay), Units: 60, At: d.store()}
	restores := d.m.Step(d.now, Consulted{Consult: out.Consults[0],
		All: []Testimony{{Bucket: "b", WholeSince: math.MaxInt64, Use: seen}}}).Restores
	if len(restores) != 1 || restores[0].Use != seen {
		t.Errorf("the journal was read at last: %+v", restores)
	}
}

// TestRowsThatNobodyAskedForAreNotKept: of a peer's rows the machine keeps only those of the cells
// in doubt, so that a peer cannot fill its memory.
func TestRowsThatNobodyAskedForAreNotKept(t *testing.T) {
	d := newDoubting(t)
	d.loses(d.bucket("b"))
	r := d.m.recoveries["b"]
	rows := make([]algorithms.RememberedRow, 10_000)
	for i := range rows {
		rows[i] = algorithms.RememberedRow{Peer: "eu", Cell: r.from - 10 + quantity.Cell(i),
			Lent: 1}
	}
	told := Testimony{Bucket: "b", Now: d.store(), Rows: rows}
	d.m.Step(d.now, Testified{Testimonies{From: "eu", ForGeneration: 7,
		All: []Testimony{told, told}}})
	if want := int(r.to - r.from + 1); len(r.rows) != want {
		t.Errorf("%d rows kept, %d cells are in doubt", len(r.rows), want)
	}
}

// TestAQuestionOfAnAbsurdGeneration: a question of a generation that no store can have fences
// nobody, and is refused.
func TestAQuestionOfAnAbsurdGeneration(t *testing.T) {
	for _, from := range []string{"us", "eu"} {
		d := newDoubting(t)
		b := d.bucket("b")
		q := Question{From: from, Node: "n2", Generation: math.MaxUint64,
			Buckets: []Doubt{{Bucket: "b"}}}
		out := d.m.Step(d.now, Questioned{ID: 1, Question: q, Buckets: []*Bucket{b}})
		if len(out.Consults) > 0 || len(out.Testify) != 1 ||
			!out.Testify[0].Testimonies.All[0].Refused || d.m.Stats().Implausible != 1 {
			t.Errorf("asked by %s: %+v", from, out)
		}
		ask := Message{From: "eu", Generation: 3,
			Asks: []Ask{{Bucket: "b", Cell: quantity.Cell(d.store() / doubtDay), Lent: 50}}}
		if out := d.m.Step(d.now,
			Asked{ID: 2, Message: ask, Buckets: []*Bucket{b}}); len(out.Lend) != 1 {
			t.Errorf("asked by %s, the node lends nothing any more: %+v", from, out.Replies)
		}
	}
}

// TestARowUnderWayAsItsBucketIsDeleted: a bucket is deleted while the journal writes one of its
// rows. The store is then opened under another generation, and the row is announced under neither.
func TestARowUnderWayAsItsBucketIsDeleted(t *testing.T) {
	d := newDoubting(t)
	b := d.bucket("b")
	cell := quantity.Cell(d.store() / doubtDay)
	ask := Message{From: "eu", Generation: 3, Asks: []Ask{{Bucket: "b", Cell: cell, Lent: 50}}}
	d.m.Step(d.now, Asked{ID: 1, Message: ask, Buckets: []*Bucket{b}})
	given := algorithms.Given{Head: algorithms.Head{Now: d.store()}, Row: algorithms.Row{Lent: 50}}
	if out := d.m.Step(d.now, Lent{ID: 1, Given: []algorithms.Given{given}}); len(out.Record) != 1 {
		t.Fatalf("the row is not written: %+v", out)
	}
	d.stand(8, "1-x")
	out := d.loses(b)
	d.tells("us", out.questions("us")...)
	d.tells("eu", out.questions("eu")...)
	if replies := d.m.Step(d.now, Recorded{ID: 1, OK: true}).Replies; len(replies) > 0 {
		t.Errorf("announced after the bucket was restored without it: %+v", replies)
	}
	if q := out.questions("eu"); len(q) != 1 || q[0].Generation != 8 {
		t.Errorf("eu is asked %+v, and fences none of generation 7", q)
	}
}

// TestAnswersThatTellNothing: an answer about another loss tells nothing of this one. Nor does an
// answer by a clock that shows that the cells in doubt no longer weigh, so that the peer has
// forgotten them. The peer counts as unknown.
func TestAnswersThatTellNothing(t *testing.T) {
	for name, of := range map[string]func(d *doubting, told *Testimonies){
		"to an earlier recovery": func(_ *doubting, told *Testimonies) { told.ForGeneration-- },
		"to a later one":         func(_ *doubting, told *Testimonies) { told.ForGeneration++ },
		"by a clock a day ahead": func(d *doubting, told *Testimonies) {
			told.All[0].Now = d.m.weighs(d.m.recoveries["b"].bucket, d.m.recoveries["b"].from)
		},
		// Of the cell after that loss it had been promised rights, and knows of them no more.
		"after its own loss in the cell before": func(d *doubting, told *Testimonies) {
			r := d.m.recoveries["b"]
			told.All[0].LostAt = r.bucket.Cells().Opens(r.from) - 1
		},
		"": func(*doubting, *Testimonies) {},
	} {
		d := newDoubting(t)
		out := d.loses(d.bucket("b"))
		d.tells("us", out.questions("us")...)
		told := Testimonies{From: "eu", Node: "n1", ForGeneration: 7,
			All: []Testimony{{Bucket: "b", Now: d.store()}}}
		of(d, &told)
		restores := d.m.Step(d.now, Testified{told}).Restores
		for range 20 {
			restores = append(restores, d.tick().Restores...)
		}
		want := []string(nil)
		if name == "" {
			want = []string{"eu"}
		}
		if len(restores) == 0 || !slices.Equal(restores[0].KnownPeers, want) {
			t.Errorf("eu has told %q: restored with %+v", name, restores)
		}
	}
}
