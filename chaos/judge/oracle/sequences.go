package oracle

// A node numbers its decisions upwards. There are gaps, because a judge is not shown all of them.
// One bit for each number, in pages of pageBits numbers, reports whether it was seen. If there are
// more than maxPages pages (at least a million numbers), the lowest are forgotten.
const (
	pageBits = 4096
	maxPages = 256
)

// sequences is the set of the decision numbers seen of one node.
type sequences struct {
	pages map[uint64]*[pageBits / 64]uint64
	floor uint64 // pages below this one are forgotten
}

// seen is the result of sequences.add.
type seen int

const (
	seenFirst seen = iota
	seenTwice
	seenTooOld // so low that it is forgotten whether it was seen
)

// add adds n and returns whether it was there.
func (s *sequences) add(n uint64) seen {
	page := n / pageBits
	if page < s.floor {
		return seenTooOld
	}
	if s.pages == nil {
		s.pages = map[uint64]*[pageBits / 64]uint64{}
	}
	p, ok := s.pages[page]
	if !ok {
		p = new([pageBits / 64]uint64)
		s.pages[page] = p
		s.forget()
	}
	word, bit := n%pageBits/64, uint64(1)<<(n%64)
	if p[word]&bit != 0 {
		return seenTwice
	}
	p[word] |= bit
	return seenFirst
}

// forget drops the lowest page if there are too many.
func (s *sequences) forget() {
	if len(s.pages) <= maxPages {
		return
	}
	lowest := ^uint64(0)
	for page := range s.pages {
		lowest = min(lowest, page)
	}
	delete(s.pages, lowest)
	s.floor = lowest + 1
}
