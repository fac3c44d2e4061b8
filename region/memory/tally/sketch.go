package tally

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

const (
	// shards and perShard bound the buckets that a sketch counts at a time.
	shards   = 16
	perShard = 32
	// Tracked is how many buckets a sketch counts at a time.
	Tracked = shards * perShard
	// Period is how long units are counted together. A report covers the present period and the
	// one before.
	Period = 30 * time.Second
)

// Sketch finds the buckets with the most units among any number of buckets. It counts Tracked of
// them at a time, 32 in each of 16 shards. A bucket that is not counted yet takes the place of the
// one with the fewest units of its shard, and inherits that number as what it may have had before
// (the Space-Saving algorithm: Metwally, Agrawal and El Abbadi, "Efficient Computation of Frequent
// and Top-k Elements in Data Streams", 2005). So a bucket with more than a thirty-second of its
// shard's units of a period is always counted. What is reported of a bucket was certainly its own;
// it may have had up to Hot.Missed more. The zero value is empty. Safe for concurrent use.
type Sketch struct {
	shards [shards]shard

	mu    sync.Mutex // held while a period ends
	begun time.Time  // of the period before, zero: nothing was counted yet
	since time.Time  // of the present period
}

type shard struct {
	mu          sync.Mutex
	now, before []counted
}

type counted struct {
	id     string
	hash   uint64
	units  Units
	missed int64 // units that the bucket may have had before it was counted, at most
}

func (c *counted) weight() int64 { return int64(c.units.Admitted+c.units.Denied) + c.missed }

// Hot is a bucket with many units.
type Hot struct {
	ID     string // of the bucket
	Units  Units  // at least
	Missed int64  // units that it may have had beside these, at most
}

// Add counts units of a bucket. hash is of its id.
func (s *Sketch) Add(id string, hash uint64, u Units) {
	if u == (Units{}) {
		return
	}
	its := &s.shards[hash%shards]
	its.mu.Lock()
	defer its.mu.Unlock()
	its.add(id, hash, u)
}

func (s *shard) add(id string, hash uint64, u Units) {
	least := 0
	for i := range s.now {
		c := &s.now[i]
		if c.hash == hash && c.id == id {
			c.units.Admitted += u.Admitted
			c.units.Denied += u.Denied
			return
		}
		if c.weight() < s.now[least].weight() {
			least = i
		}
	}
	if len(s.now) < perShard {
		s.now = append(s.now, counted{id: id, hash: hash, units: u})
		return
	}
	s.now[least] = counted{id: id, hash: hash, units: u, missed: s.now[least].weight()}
}

// Turn begins another period if the present one is over at a time. What the period before it
// counted is forgotten.
func (s *Sketch) Turn(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.since.IsZero():
		s.begun, s.since = now, now
		return
	case now.Sub(s.since) < Period:
		return
	}
	s.begun, s.since = s.since, now
	for i := range s.shards {
		its := &s.shards[i]
		its.mu.Lock()
		its.now, its.before = its.before[:0], its.now
		its.mu.Unlock()
	}
}

// Since returns since when what a report covers was counted; zero: nothing was counted yet.
func (s *Sketch) Since() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// Hottest returns the most buckets with the most units, admitted and denied together, and the most
// with the most units denied, without doubles and ordered by units, then by id.
func (s *Sketch) Hottest(most int) []Hot {
	of := map[string]*Hot{}
	for i := range s.shards {
		its := &s.shards[i]
		its.mu.Lock()
		for _, c := range slices.Concat(its.now, its.before) {
			if of[c.id] == nil {
				of[c.id] = &Hot{ID: c.id}
			}
			h := of[c.id]
			h.Units.Admitted += c.units.Admitted
			h.Units.Denied += c.units.Denied
			h.Missed += c.missed
		}
		its.mu.Unlock()
	}
	all := make([]Hot, 0, len(of))
	for _, h := range of {
		all = append(all, *h)
	}
	return Busiest(all, most)
}

// Busiest returns the most of all with the most units, and the most with the most units denied,
// without doubles and ordered by units, then by id. It orders all.
func Busiest(all []Hot, most int) []Hot {
	byID := func(a, b Hot) int { return cmp.Compare(a.ID, b.ID) }
	slices.SortFunc(all, func(a, b Hot) int {
		return cmp.Or(cmp.Compare(b.Units.Denied, a.Units.Denied), byID(a, b))
	})
	denied := map[string]bool{}
	for _, h := range all[:min(most, len(all))] {
		denied[h.ID] = h.Units.Denied > 0
	}
	slices.SortFunc(all, func(a, b Hot) int {
		return cmp.Or(cmp.Compare(b.total(), a.total()), byID(a, b))
	})
	var found []Hot
	for i, h := range all {
		if i < most || denied[h.ID] {
			found = append(found, h)
		}
	}
	return found
}

func (h Hot) total() int64 { return int64(h.Units.Admitted + h.Units.Denied) }
