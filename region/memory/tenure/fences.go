package tenure

import (
	"context"
	"fmt"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
)

// Fenced is a region that a document fences, with the life that it ends.
type Fenced struct {
	Region string
	Life   int64
}

// fences keeps the latest word of another region that this one is fenced: an operator has given
// this region's part away. The word counts whatever documents are open here, until one of them says
// itself what becomes of the region.
type fences struct {
	told  *barrier.Fence // nil: none
	noted string         // what the store remembers of it
}

// hear takes in what another region says. It reports whether that fences this region in a way not
// known before.
func (f *fences) hear(a barrier.Agenda, self, from string, open []Told) (news bool) {
	for _, one := range open {
		for _, fence := range one.Fenced {
			if fence.Region == self && (f.told == nil || fence.Life > f.told.Life) {
				f.told, news = &barrier.Fence{From: from, Life: fence.Life}, true
			}
		}
	}
	return news && f.of(a, self) != nil
}

// of returns the fence of a region that no document of an agenda knows of; nil: there is none.
func (f *fences) of(a barrier.Agenda, self string) *barrier.Fence {
	if f.told == nil || a.Knows(self, *f.told) {
		return nil
	}
	return f.told
}

// fencesOf returns the regions that a document fences, if it is the newest of an agenda.
func fencesOf(d *policy.Document, a barrier.Agenda) (all []Fenced) {
	if d != a.Newest() {
		return nil
	}
	for _, region := range d.Fenced {
		all = append(all, Fenced{Region: region, Life: d.Life(region)})
	}
	return all
}

// fenceNote is the name of the note by which a store remembers who fenced its region, and in which
// life.
const fenceNote = "fenced by a region"

// noteFence makes the store remember a fence, so that it still counts for a node that starts again.
func (t *Tenure) noteFence(ctx context.Context) error {
	t.known.mu.Lock()
	told, noted := t.known.fences.told, t.known.fences.noted
	t.known.mu.Unlock()
	if told == nil {
		return nil
	}
	text := fmt.Sprintf("%d %s", told.Life, told.From)
	if text == noted {
		return nil
	}
	if _, err := t.config.Store.Note(ctx, fenceNote, text); err != nil {
		return err
	}
	t.known.mu.Lock()
	defer t.known.mu.Unlock()
	t.known.fences.noted = text
	return nil
}

// learnFence reads what the store remembers of a fence, when a node opens it.
func (t *Tenure) learnFence(ctx context.Context) error {
	text, err := t.config.Store.Note(ctx, fenceNote, "")
	if err != nil {
		return err
	}
	var f barrier.Fence
	if n, _ := fmt.Sscanf(text, "%d %s", &f.Life, &f.From); n != 2 {
		return nil
	}
	t.known.mu.Lock()
	defer t.known.mu.Unlock()
	if told := t.known.fences.told; told == nil || f.Life > told.Life {
		t.known.fences = fences{&f, text}
	}
	return nil
}
