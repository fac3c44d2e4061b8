package copies

import (
	"slices"
	"sync"
	"time"

	"github.com/quotad/quotad/quantity"
)

// maxQueued bounds what waits to be told to one mate. If there is more, all is told anew, from the
// journal.
const maxQueued = 64 * MaxUses

// Pages returns uses that the node's journal has, at most MaxUses of them, and where the next page
// begins; empty: there is none. The first page is from "".
type Pages func(from string) (page []Use, next string, err error)

// Mate is a node that has copies: of the same region, or of another one if the region has no other node.
type Mate struct{ Region, Address string }

// Sender tells other nodes, its mates, what this one has seen. Safe for concurrent use; of one mate one
// part at a time is on its way.
type Sender struct {
	region, node string
	life         uint64
	pages        Pages

	mu    sync.Mutex
	seen  Seen // but for its uses
	mates map[Mate]*mate
	anew  int64 // how often a mate was told all anew because too much waited
}

// mate is how far one mate has been told.
type mate struct {
	begun  bool
	number uint64 // of the part that comes next
	from   string // where the next page of the journal begins
	paged  bool   // all pages are told
	queue  []Use  // what has moved since
	whole  quantity.StoreTime
	sent   step // what the part that is on its way changes
}

// step is what changes once a mate has a part.
type step struct {
	queued int
	from   string
	paged  bool
}

// NewSender returns the sender of a life of a region's node.
func NewSender(region, node string, life uint64, pages Pages) *Sender {
	return &Sender{region: region, node: node, life: life, pages: pages, mates: map[Mate]*mate{}}
}

// To sets the mates. Others are told nothing more.
func (s *Sender) To(mates []Mate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := make(map[Mate]*mate, len(mates))
	for _, to := range mates {
		if kept[to] = s.mates[to]; kept[to] == nil {
			kept[to] = &mate{}
		}
	}
	s.mates = kept
}

// Seen is what a node has seen.
type Seen struct {
	Uses []Use // that the journal has now
	// With Uses the journal has all that the node saw until AsOf: all that it used from Since on.
	// If Read is not 0, the node read that from the store at Read.
	Since, Read, AsOf quantity.StoreTime
	// All says that this is also all that every other node did, of those that the store has
	// answered, from SinceAll on. A mate of another region tells for the whole region, so its copy
	// is complete only if All is true.
	All      bool
	SinceAll quantity.StoreTime
}

// Note takes in what the node has seen.
func (s *Sender) Note(seen Seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	uses := seen.Uses
	s.seen, s.seen.Uses = seen, nil
	for _, m := range s.mates {
		if !m.begun { // the pages to come have them
			continue
		}
		if m.queue = append(m.queue, uses...); len(m.queue) > maxQueued {
			*m = mate{}
			s.anew++
		}
	}
}

// Anew makes the sender tell all mates everything anew.
func (s *Sender) Anew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.mates {
		*m = mate{}
	}
}

// Next returns the part that a mate is to be told next. ok is false if there is none.
func (s *Sender) Next(to Mate) (p Part, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, asOf, since := s.mates[to], s.seen.AsOf, s.seen.Since
	if to.Region != s.region {
		if since = s.seen.SinceAll; !s.seen.All {
			asOf = 0
		}
	}
	if m == nil || s.seen.AsOf == 0 || m.paged && len(m.queue) == 0 && m.whole >= asOf {
		return p, false, nil
	}
	p = Part{Region: s.region, Node: s.node, Life: s.life, Number: m.number, Since: since, Read: s.seen.Read}
	m.begun, m.sent = true, step{from: m.from, paged: m.paged}
	if m.paged || len(m.queue) > MaxUses { // the queue does not grow while the journal is told
		p.Uses = slices.Clone(m.queue[:min(len(m.queue), MaxUses)])
		m.sent.queued = len(p.Uses)
	} else {
		p.Uses, m.sent.from, err = s.pages(m.from)
		m.sent.paged = m.sent.from == ""
	}
	if m.sent.paged && m.sent.queued == len(m.queue) {
		p.Until = asOf
	}
	return p, err == nil, err
}

// Answered takes a mate's answer to a part: the number of the part that it takes next.
func (s *Sender) Answered(by Mate, p Part, next uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.mates[by]
	switch {
	case m == nil || !m.begun || m.number != p.Number: // told anew meanwhile
	case next != p.Number+1:
		*m = mate{}
	default:
		m.number, m.from, m.paged = next, m.sent.from, m.sent.paged
		m.queue = slices.Delete(m.queue, 0, m.sent.queued)
		m.whole = max(m.whole, p.Until)
	}
}

// fresh is how old a copy may be that counts as one, in microseconds.
const fresh = int64(2 * time.Second / time.Microsecond)

// Numbers returns how many mates have a copy that is at most two seconds old at a time of the store, and
// how often one was told all anew because too much waited for it.
func (s *Sender) Numbers(now quantity.StoreTime) (have int, anew int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.mates {
		if m.whole > 0 && now.Sub(m.whole) <= fresh {
			have++
		}
	}
	return have, s.anew
}
