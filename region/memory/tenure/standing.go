package tenure

import (
	"cmp"
	"slices"
	"time"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/quantity"
)

// Documents is what a node knows of the limits documents of all regions.
type Documents struct {
	Open    []Told            // in this region, the oldest first; At is 0 while it is not acknowledged
	Regions []RegionDocuments // the other regions of the open documents, by name
	// Limits are those that an older document still binds, at most maxHeldShown of Held.
	Limits []HeldLimit
	Held   int
	// File is why the document of the node's file is not open; nil: it is, or was.
	File error
}

// RegionDocuments is what a node heard of another region's documents.
type RegionDocuments struct {
	Region     string
	RegionTold // no document: nothing was heard
	// Waited is how long limits have waited for the region to acknowledge a document; 0: none
	// waits.
	Waited time.Duration
}

// HeldLimit is a limit that an older document still binds: this region uses the least of what
// several documents give it. One that was removed stays known, should a document have it again.
type HeldLimit struct {
	Limit   *policy.Limit
	Removed bool               // the newest document has it no more
	Charged bool               // though removed, beside what took its place
	Since   quantity.StoreTime // 0: this region has not acknowledged the document that changes it
	Waiting []string           // regions that must acknowledge
	Opens   quantity.StoreTime // when fewer documents bind it; 0: not known yet
}

// maxHeldShown bounds the limits of Documents. A document has up to thousands.
const maxHeldShown = 64

// Documents returns what the node knows of the limits documents of all regions.
func (t *Tenure) Documents() Documents {
	v := t.Rules().View
	d := Documents{}
	for _, one := range v.Agenda.Documents() {
		d.Open = append(d.Open, Told{Epoch: one.Epoch(), At: v.Heard[v.Region][one.Epoch()]})
	}
	for i := range v.Agenda.Newest().Limits {
		l := &v.Agenda.Newest().Limits[i]
		if s := v.Standing(l); s.Open() {
			d.held(v, HeldLimit{Limit: l, Waiting: s.Waiting, Opens: s.Opens},
				s.Binding[min(1, len(s.Binding)-1)].Document)
		}
	}
	for _, l := range v.Leftovers() {
		d.held(v, HeldLimit{Limit: l.Limit, Removed: true, Charged: l.Charged, Waiting: l.Standing.Waiting,
			Opens: l.Standing.Opens}, v.Agenda.Newest())
	}
	d.Regions, d.File = t.known.regions(v.Agenda)
	return d
}

// held adds a limit that a document changed.
func (d *Documents) held(v *barrier.View, l HeldLimit, by *policy.Document) {
	if d.Held++; len(d.Limits) < maxHeldShown {
		l.Since = v.Heard[v.Region][by.Epoch()]
		d.Limits = append(d.Limits, l)
	}
}

// regions returns what was heard of the other regions of an agenda, and why the document of the
// node's file is not open.
func (k *knowledge) regions(a barrier.Agenda) (all []RegionDocuments, file error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	seen := map[string]bool{k.region: true}
	for _, d := range a.Documents() {
		for _, r := range d.Regions {
			if seen[r.Name] {
				continue
			}
			seen[r.Name] = true
			one := RegionDocuments{Region: r.Name, RegionTold: k.told[r.Name]}
			if since, waiting := k.waiting[r.Name]; waiting {
				one.Waited = max(k.now().Sub(since), 1)
			}
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b RegionDocuments) int { return cmp.Compare(a.Region, b.Region) })
	return all, k.file
}

// NoteFile notes why the document of the node's file is not open, nil if it is.
func (t *Tenure) NoteFile(err error) {
	t.known.mu.Lock()
	defer t.known.mu.Unlock()
	t.known.file = err
}

// FileRefused returns why the document of the node's file is not open, nil if it is.
func (t *Tenure) FileRefused() error {
	t.known.mu.Lock()
	defer t.known.mu.Unlock()
	return t.known.file
}
