package local

import (
	"context"
	"hash/maphash"
	"strconv"
	"strings"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/repeat"
	"github.com/quotad/quotad/region/memory/rules"
)

// windowSpending is what was admitted of the buckets of one limit in one window. It holds no
// pointer for each bucket, so that a million of them cost the garbage collector nothing.
type windowSpending struct {
	index   map[uint64]uint32 // place of a bucket's record, by the hash of its id
	records [][]spent         // in blocks
	ids     idList
	turns   []uint32 // records that the store is still to charge, the next one first
	told    []uint32 // records that were returned in the present turn
	bytes   int
	units   quantity.Units
	due     int64 // units that the store has yet to charge
}

// recordBlock is how many records are in a block.
const recordBlock = 1024

func (w *windowSpending) record(i uint32) *spent { return &w.records[i/recordBlock][i%recordBlock] }

// append makes a record for a bucket. id is without the head that all buckets of the limit share.
func (w *windowSpending) append(h uint64, id string) {
	i := len(w.index)
	if i%recordBlock == 0 {
		w.records = append(w.records, nil)
	}
	last := &w.records[i/recordBlock]
	*last = append(*last, spent{id: w.ids.add(id)})
	w.index[h] = uint32(i)
}

// hash returns the hash of an id. It is seeded, so that nobody outside can find two ids with one
// hash.
func (p *Part) hash(id string) uint64 { return maphash.String(p.seed, id) }

// find returns the window and the place of a bucket's record in it, or nil if the bucket has no
// record there.
func (p *Part) find(k windowKey, id string) (*windowSpending, uint32) {
	w := p.windows[k]
	if w == nil {
		return nil, 0
	}
	i, known := w.index[p.hash(id)]
	if !known || w.ids.at(w.record(i).id) != id[len(k.head):] {
		return nil, 0
	}
	return w, i
}

// begin makes a record for a bucket that has none. It returns false if there is no memory, or
// another bucket has the same hash.
func (p *Part) begin(k windowKey, id string) bool {
	h, w := p.hash(id), p.windows[k]
	if w != nil {
		if _, taken := w.index[h]; taken {
			p.refused++
			return false
		}
	}
	if !p.room(k, id) {
		p.refused++
		return false
	}
	if w == nil {
		w = &windowSpending{index: map[uint64]uint32{}}
		p.windows[k], p.order = w, append(p.order, k)
	}
	own := id[len(k.head):]
	w.append(h, own)
	bytes := recordBytes + len(own)
	w.bytes, p.bytes, p.buckets = w.bytes+bytes, p.bytes+bytes, p.buckets+1
	return true
}

// add charges a cost to a bucket that has a record. A negative cost is given back.
func (p *Part) add(k windowKey, a *rules.Applied, cost quantity.Units) {
	w, i := p.find(k, a.Bucket.ID)
	s := *w.record(i)
	s.units, s.kept = s.units+cost, false
	if a.Reserve != nil {
		s.reserved += cost
	}
	w.put(i, s)
}

// keep adds units that the store is to charge to a bucket that has a record. None are out of a reserve.
func (p *Part) keep(k windowKey, id string, units quantity.Units) {
	w, i := p.find(k, id)
	s := *w.record(i)
	s.kept = s.kept || s.units == 0
	s.units = min(s.units+units, algorithms.MaxUnits)
	w.put(i, s)
}

// put stores a changed record and updates the sums. A record with units still to charge enters
// turns.
func (w *windowSpending) put(i uint32, s spent) {
	before := *w.record(i)
	w.units += s.units - before.units
	w.due += int64(max(s.due()-s.settled, 0) - max(before.due()-before.settled, 0))
	if s.due() > s.settled && !s.waits {
		s.waits = true
		w.turns = append(w.turns, i)
	}
	*w.record(i) = s
}

// unsettled appends to all what the store is still to charge, until the list has most entries.
// Records that were appended come last in the next turn.
func (w *windowSpending) unsettled(k windowKey, all []unbooked, most int) []unbooked {
	waiting := w.turns
	for len(waiting) > 0 && len(all) < most {
		i := waiting[0]
		waiting = waiting[1:]
		s := w.record(i)
		if s.due() <= s.settled {
			s.waits = false
			continue
		}
		all = append(all, unbooked{k.head + w.ids.at(s.id), k.number, s.due(), k})
		w.told = append(w.told, i)
	}
	w.turns = append(waiting, w.told...)
	w.told = w.told[:0]
	return all
}

// idRef is the place of an id in an idList.
type idRef uint32

// idList stores ids one after the other, in blocks. Two bytes before each id are its length.
type idList struct {
	blocks [][]byte
}

// idBlockBytes is the size of a block. An idRef has 16 bits for the block, and 16 for the place in
// it.
const idBlockBytes = 1 << 16

// add stores an id.
func (l *idList) add(id string) idRef {
	last := len(l.blocks) - 1
	if last < 0 || len(l.blocks[last])+2+len(id) > idBlockBytes {
		l.blocks = append(l.blocks, nil)
		last++
	}
	at := len(l.blocks[last])
	l.blocks[last] = append(append(l.blocks[last], byte(len(id)>>8), byte(len(id))), id...)
	return idRef(last<<16 | at)
}

// at returns an id that add stored.
func (l *idList) at(r idRef) string {
	b := l.blocks[r>>16][r&(idBlockBytes-1):]
	return string(b[2 : 2+(int(b[0])<<8|int(b[1]))])
}

// headParts is the number of netstrings at the beginning of a bucket's id that name its limit:
// domain, name, algorithm and window.
const headParts = 4

// headOf returns the part of a bucket's id that is the same for all buckets of its limit. It is
// empty if the id does not have that form.
func headOf(id string) string {
	at := 0
	for range headParts {
		digits, _, found := strings.Cut(id[at:], ":")
		n, err := strconv.Atoi(digits)
		end := at + len(digits) + 1 + n + 1
		if !found || err != nil || n < 0 || end > len(id) {
			return ""
		}
		at = end
	}
	return id[:at]
}

// fullLogged says when it was last logged that the meter is full, and how many requests had been
// refused by then.
type fullLogged struct {
	at      time.Time
	refused int64
}

const (
	// fullLookedEvery is how often the node checks whether the meter is full. fullLoggedEvery is
	// how often it logs that at most.
	fullLookedEvery = 500 * time.Millisecond
	fullLoggedEvery = time.Minute
)

// Watch checks whether the meter is full and logs it, until ctx ends.
func (p *Part) Watch(ctx context.Context) {
	var full fullLogged
	repeat.Every(ctx, fullLookedEvery, func(time.Time) {
		full = p.tellFull(full, p.now())
	})
}

// tellFull logs that buckets are denied because the meter is full, at most once a minute.
func (p *Part) tellFull(last fullLogged, now time.Time) fullLogged {
	refused := p.Status().Refused
	if refused == last.refused || !last.at.IsZero() && now.Sub(last.at) < fullLoggedEvery {
		return last
	}
	p.log.Warn("too many buckets are charged without the store: others are denied until windows end",
		"requests", refused-last.refused, "megabytes", maxBytes>>20)
	return fullLogged{now, refused}
}
