package sim

import (
	"slices"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

// entry is what one document says of a limit.
type entry struct {
	*policy.Limit               // with a weight for each region of the plan, 0 if the document has it not
	written       *policy.Limit // as it stands in the document
	place         []int         // of each region of the plan among those of the document; -1: not there
	version       int64
}

// newEntry returns the entry of a limit of a document.
func (p *Plan) newEntry(d *policy.Document, written *policy.Limit) entry {
	l := *written
	e := entry{Limit: &l, written: written, version: d.Version}
	l.Weights = make([]quantity.Units, len(p.Regions))
	for i, r := range p.Regions {
		place, has := d.RegionIndex(r.Name)
		if !has {
			e.place = append(e.place, -1)
			continue
		}
		e.place, l.Weights[i] = append(e.place, place), written.Weights[place]
	}
	return e
}

// documents parses all documents of the plan: those that are given to regions and differ in nothing
// but their version, too.
func (p *Plan) documents() (all []*policy.Document, err error) {
	for version := range 1 + max(len(p.Versions), p.given()) {
		d, err := p.document(int64(version + 1))
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// entries returns what documents say of each limit that any of them has, in the order in which they
// first appear. A limit that gets another name or domain is another limit.
func (p *Plan) entries(documents []*policy.Document) (all [][]entry) {
	type named struct{ domain, name string }
	place := map[named]int{}
	for _, d := range documents {
		for i := range d.Limits {
			l := &d.Limits[i]
			at, known := place[named{l.Domain, l.Name}]
			if !known {
				at, all = len(all), append(all, nil)
				place[named{l.Domain, l.Name}] = at
			}
			all[at] = append(all[at], p.newEntry(d, l))
		}
	}
	return all
}

// of returns the entry of a document, if it has one.
func (l *limit) of(version int64) (e entry, has bool) {
	i := slices.IndexFunc(l.versions, func(e entry) bool { return e.version == version })
	if i < 0 {
		return e, false
	}
	return l.versions[i], true
}

// stored returns what a document has the regions' stores hold of the bucket.
func (b *bucket) stored(e entry) (all allocator.Split) {
	rotation := policy.BucketID(b.id).Hash() % uint64(len(e.written.Weights))
	limit, burst := e.Shared()
	split := allocator.SplitOf(limit, burst, e.written.Weights, rotation,
		e.Home()).Stored(quantity.PPM(e.Reserve()))
	for _, place := range e.place {
		units, tokens := quantity.Units(0), quantity.Units(0)
		if place >= 0 {
			units, tokens = split.Units[place], split.Burst[place]
		}
		all.Units, all.Burst = append(all.Units, units), append(all.Burst, tokens)
	}
	return all
}

// entitled returns the most that a region's store holds by any document, in units and in burst.
func (b *bucket) entitled(region int) (units, burst quantity.Units) {
	for _, e := range b.limit.versions {
		s := b.stored(e)
		units, burst = max(units, s.Units[region]), max(burst, s.Burst[region])
	}
	return units, burst
}

// most returns the most units that all regions' stores hold together by any document that is in
// force in a stretch of time.
func (b *bucket) most(from, to quantity.StoreTime) (most quantity.Units) {
	for _, e := range b.limit.inForce(from, to) {
		var sum quantity.Units
		for _, units := range b.stored(e).Units {
			sum += units
		}
		most = max(most, sum)
	}
	return most
}

// lending returns the highest lending limit of any document.
func (b *bucket) lending() (most quantity.PPM) {
	for _, e := range b.limit.versions {
		most = max(most, quantity.PPM(e.LendingLimit))
		if e.Home() {
			most = allocator.PPM
		}
	}
	return most
}
