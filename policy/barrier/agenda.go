package barrier

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/policy"
)

// The bounds of what is open.
const (
	// MaxOpen is how many documents stay open whole. If there are more, the older half is folded:
	// of each limit that they still bind, the least and the most that they give is kept.
	MaxOpen = 32
	// MaxReplaced is how many further documents may stay open because requests are still charged to
	// limits that newer documents have replaced. A region takes no further document that replaces
	// limits until one of them is over.
	MaxReplaced = 16
)

// Agenda is the documents that are open in one region: the base, which is in force whole, and newer
// ones. It does not change once made. The zero Agenda has no document.
type Agenda struct {
	documents []*policy.Document // what is kept, then by version and name; the first is the base
	changed   map[policy.BucketID]terms
	removed   []removed
}

// Of returns the agenda of one document.
func Of(d *policy.Document) Agenda { return newAgenda([]*policy.Document{d}) }

// Union returns the agenda of documents found in several places, such as a journal and a store. It
// fails if the folded documents of these places together are too much to keep.
func Union(documents ...*policy.Document) (Agenda, error) {
	slices.SortFunc(documents, func(a, b *policy.Document) int { return byAge(a.Epoch(), b.Epoch()) })
	documents, err := joinKept(slices.CompactFunc(documents, same))
	if err != nil {
		return Agenda{}, err
	}
	return newAgenda(documents), nil
}

// Kept returns what is kept of folded documents; nil: nothing is.
func (a Agenda) Kept() *policy.Kept { return a.documents[0].Kept }

// counts reports whether the document at a place can count alone. A document that is older than a
// folded one cannot.
func (a Agenda) counts(place int) bool {
	kept := a.Kept()
	return kept == nil || a.documents[place].Version > kept.Through
}

// Documents returns the open documents, the base first. The caller must not modify the slice.
func (a Agenda) Documents() []*policy.Document { return a.documents }

// Base returns the oldest document.
func (a Agenda) Base() *policy.Document { return a.documents[0] }

// Newest returns the newest document, which matches requests.
func (a Agenda) Newest() *policy.Document { return a.documents[len(a.documents)-1] }

// String returns the text by which a store's token names the agenda: the epochs of the documents,
// the base first, as in "3-1a2b3c4d5e6f+4-a1b2c3d4e5f6".
func (a Agenda) String() string {
	names := make([]string, len(a.documents))
	for i, d := range a.documents {
		names[i] = d.Epoch().String()
	}
	return algorithms.JoinEpochs(names)
}

// Brief names the documents for a person: all while they are few, else the newest and how many more.
func (a Agenda) Brief() string {
	if more := len(a.documents) - 1; more > 2 {
		return fmt.Sprintf("%s (with %d more)", a.Newest().Epoch(), more)
	}
	return a.String()
}

// Names returns the names of the documents in the text of an agenda.
func Names(text string) []string { return algorithms.SplitEpochs(text) }

// Merged returns the names of the documents that must be open where an agenda meets the text of
// another.
func Merged(a Agenda, text string) []string {
	return algorithms.SplitEpochs(algorithms.MergeEpochs(a.String(), text))
}

// Find returns the open document of an epoch, given as [policy.Epoch.String] writes it.
func (a Agenda) Find(epoch string) (*policy.Document, bool) {
	for _, d := range a.documents {
		if d.Epoch().String() == epoch {
			return d, true
		}
	}
	return nil, false
}

// Has reports whether a document is open, or folded.
func (a Agenda) Has(e policy.Epoch) bool {
	if kept := a.Kept(); kept != nil && (slices.Contains(kept.Names, e) || slices.Contains(kept.Before, e)) {
		return true
	}
	return slices.ContainsFunc(a.documents, func(d *policy.Document) bool { return d.Epoch() == e })
}

// Folded returns the names of folded documents that are not open any more.
func (a Agenda) Folded() (names []string) {
	if kept := a.Kept(); kept != nil {
		for _, e := range slices.Concat(kept.Names, kept.Before) {
			if !slices.Contains(kept.Pinned, e) {
				names = append(names, e.String())
			}
		}
	}
	return names
}

// oldest returns the lowest version that binds.
func (a Agenda) oldest() int64 {
	if kept := a.Kept(); kept != nil {
		return kept.Oldest
	}
	return a.documents[0].Version
}

// Older reports whether a document is older than all that bind.
func (a Agenda) Older(e policy.Epoch) bool { return !e.IsKept() && e.Version < a.oldest() }

var (
	// ErrOlder says that a document is older than the base, which is in force everywhere.
	ErrOlder = errors.New("a newer document is in force: raise its version")
	// ErrConflict says that another document of the same version is open.
	ErrConflict = errors.New("two documents have one version: give one of them, or a third that says what both should, a higher version, everywhere")
	// ErrTooMany says that MaxReplaced documents are open for the sake of limits that were replaced.
	ErrTooMany = fmt.Errorf("it replaces limits, and requests are still charged to limits of %d documents that were replaced: see quotad status --documents for until when", MaxReplaced)
	// ErrLeftOut says that the newest document leaves out a region without saying that it goes.
	ErrLeftOut = errors.New("a region is left out")
	// ErrUnfenced says that the newest document no longer fences a region, and does not say that the
	// region has returned.
	ErrUnfenced = errors.New("a fence is dropped")
)

// Refused reports whether an error says that a document is not taken beside those that are open.
// Trying again helps only once others are open.
func Refused(err error) bool {
	return errors.Is(err, ErrOlder) || errors.Is(err, ErrConflict) || errors.Is(err, ErrTooMany) ||
		errors.Is(err, ErrLeftOut) || errors.Is(err, ErrUnfenced) || errors.Is(err, policy.ErrFar)
}

// Check reports whether [Agenda.Learn] would take a document of an epoch, which need not be at hand
// yet: it fails with ErrOlder or ErrConflict.
func (a Agenda) Check(e policy.Epoch) error {
	if a.Has(e) {
		return nil
	}
	newest := a.Newest().Epoch()
	switch {
	case a.Older(e):
		return ErrOlder
	case e.Version == newest.Version:
		return ErrConflict
	}
	return nil
}

// Learn returns the agenda with one document more. A document that is older than the newest one is
// taken too: some region may still decide under it. Of two documents of one version, the second
// is taken only when a newer one is open, which settles the matter. It fails if the newest document
// does not follow the others; see [Agenda.Follows].
func (a Agenda) Learn(d *policy.Document) (Agenda, error) {
	err := a.Check(d.Epoch())
	if err == nil && a.Has(d.Epoch()) {
		return a, nil
	}
	var next Agenda
	if err == nil {
		next, err = Union(append(slices.Clone(a.documents), d)...)
	}
	if err == nil {
		err = next.Follows()
	}
	if n := next.replaced(); err == nil && n > MaxReplaced && n > a.replaced() {
		err = ErrTooMany
	}
	if err != nil {
		return a, fmt.Errorf("document %s is not taken, %s is open: %w", d.Epoch(), a.Brief(), err)
	}
	return next, nil
}

// From returns the agenda without the documents that are older than the one at place n.
func (a Agenda) From(n int) Agenda { return newAgenda(a.documents[n:]) }

func same(a, b *policy.Document) bool { return a.Epoch() == b.Epoch() }

// byAge orders epochs by version, and those of one version by name. Folded documents come first.
func byAge(a, b policy.Epoch) int {
	kept := func(e policy.Epoch) int {
		if e.IsKept() {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(kept(a), kept(b)), cmp.Compare(a.Version, b.Version), cmp.Compare(a.String(), b.String()))
}

// replaced returns how many documents are open because requests are still charged to their limits.
func (a Agenda) replaced() int {
	of := map[int]bool{}
	for _, r := range a.removed {
		if r.charged {
			of[r.of] = true
		}
	}
	return len(of)
}
