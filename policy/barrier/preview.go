package barrier

import (
	"slices"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

// Change is what a newer document does to one limit.
type Change struct {
	// Older and Newer are the limit's entries. Older is nil if the limit is added, Newer if it is
	// removed.
	Older, Newer *policy.Limit
	// Open says that both documents bind the limit for a while: regions have the least that either
	// gives them. The parts of a removed limit stay known. Of an added limit, some region has at
	// most an even part.
	Open bool
	// Charged says that requests charge a removed limit meanwhile, along with its replacement.
	Charged bool
	// Waiting holds the regions that must acknowledge before that ends. Unless the limit is
	// removed, a majority of the regions must acknowledge in any case.
	Waiting []string
	// Until is when the newer document counts alone if all of them acknowledge it at the time of
	// the preview.
	Until quantity.StoreTime
}

// Preview returns what a newer document does to the limits of both documents, those of the newer
// first. It takes the older one to be in force everywhere, and all regions to acknowledge the newer
// one at the store time at. It fails with ErrOlder or ErrConflict if the newer document is not the
// newer one.
func Preview(older, newer *policy.Document, at quantity.StoreTime) ([]Change, error) {
	agenda, err := Of(older).Learn(newer)
	if err != nil {
		return nil, err
	}
	p := preview{at: at, nobody: View{Agenda: agenda, Region: newer.Regions[0].Name, Now: at}}
	p.all = p.nobody
	p.all.Heard = Heard{}
	for _, d := range agenda.Documents() {
		for _, r := range d.Regions {
			p.all.Heard.Add(r.Name, newer.Epoch(), at)
		}
	}
	entries := agenda.entries()
	var changes []Change
	for i := range newer.Limits {
		l := &newer.Limits[i]
		changes = append(changes, p.kept(entries[l.Bucket(nil)].entries[0], l))
	}
	for i := range older.Limits {
		l := &older.Limits[i]
		if entries[l.Bucket(nil)].entries[1] == nil {
			changes = append(changes, p.removed(l))
		}
	}
	return changes, nil
}

// preview is how a region sees two documents that nobody, or everybody, has acknowledged.
type preview struct {
	at          quantity.StoreTime
	nobody, all View
}

// kept returns the change of a limit that the newer document has.
func (p *preview) kept(older, newer *policy.Limit) Change {
	c := Change{Older: older, Newer: newer, Until: p.at}
	if !p.nobody.Standing(newer).Open() {
		return c
	}
	of, by := p.nobody.Agenda.Base(), p.nobody.Agenda.Newest()
	if older == nil {
		even := evenly(of, newer)
		if spreadOf(by, newer).losing(spread{even.Regions, even.Most}, less) != nil {
			c.Open, c.Waiting = true, p.running(even.Regions)
		}
		return c
	}
	waiting := spreadOf(of, older).losing(spreadOf(by, newer), less)
	for _, d := range []*policy.Document{of, by} {
		if counted := slices.DeleteFunc(d.RegionNames(), by.Fences); len(counted) <= 2 { // each is needed for a majority
			waiting = append(waiting, counted...)
		}
	}
	c.Open, c.Waiting = true, p.running(waiting)
	c.Until = max(p.at, p.all.Standing(newer).Opens)
	return c
}

// removed returns the change of a limit that the newer document does not have.
func (p *preview) removed(older *policy.Limit) Change {
	c := Change{Older: older, Until: p.at}
	is := func(l Leftover) bool { return l.Limit == older }
	before, after := p.nobody.Leftovers(), p.all.Leftovers()
	if i := slices.IndexFunc(before, is); i >= 0 {
		c.Open, c.Charged, c.Waiting = true, before[i].Charged, p.running(before[i].Standing.Waiting)
	}
	if i := slices.IndexFunc(after, is); i >= 0 {
		c.Until = max(p.at, after[i].Standing.Opens)
	}
	return c
}

// running returns those of some regions, sorted, that the newer document does not fence. Nobody
// waits for a fenced one.
func (p *preview) running(waiting []string) []string {
	waiting = slices.DeleteFunc(slices.Clone(waiting), p.nobody.Agenda.Newest().Fences)
	slices.Sort(waiting)
	return slices.Compact(waiting)
}
