package admit

import (
	"context"
	"hash/maphash"
	"strconv"
	"strings"
	"time"

	"github.com/quotad/quotad/region/repeat"
	"github.com/quotad/quotad/region/rules"
)

// windowSpending is what was admitted of the buckets of one limit in one window. It holds no
// pointer for each of them, so that a million cost the garbage collector nothing.
type windowSpending struct {
	index   map[uint64]uint32 // of a bucket's record, by the hash of its id
	records [][]spent         // in blocks
	ids     idList
	turns   []uint32 // records that the store is to be told of, in turn
	told    []uint32 // those that have just had their turn
	bytes   int
	units   int64
	due     int64 // units that the store is still to charge
}

// recordBlock is how many records are in a block.
const recordBlock = 1024

func (w *windowSpending) record(i uint32) *spent { return &w.records[i/recordBlock][i%recordBlock] }

// append makes a record for a bucket's id, without its head.
func (w *windowSpending) append(h uint64, id string) {
	i := len(w.index)
	if i%recordBlock == 0 {
		w.records = append(w.records, nil)
	}
	last := &w.records[i/recordBlock]
	*last = append(*last, spent{id: w.ids.add(id)})
	w.index[h] = uint32(i)
}

// hash returns that of an id. It is seeded: nobody outside can find two ids with one hash.
func (f *fallback) hash(id string) uint64 { return maphash.String(f.seed, id) }

// find returns the window in which something was spent of a bucket, and its record there; nil:
// nothing was.
func (f *fallback) find(k windowKey, id string) (*windowSpending, uint32) {
	w := f.windows[k]
	if w == nil {
		return nil, 0
	}
	i, known := w.index[f.hash(id)]
	if !known || w.ids.at(w.record(i).id) != id[len(k.head):] {
		return nil, 0
	}
	return w, i
}

// begin makes a record for a bucket of which nothing was spent yet; false: there is no memory, or
// another bucket has its hash.
func (f *fallback) begin(k windowKey, id string) bool {
	h, w := f.hash(id), f.windows[k]
	if w != nil {
		if _, taken := w.index[h]; taken {
			f.refused++
			return false
		}
	}
	if !f.room(k, id) {
		f.refused++
		return false
	}
	if w == nil {
		w = &windowSpending{index: map[uint64]uint32{}}
		f.windows[k], f.order = w, append(f.order, k)
	}
	own := id[len(k.head):]
	w.append(h, own)
	bytes := fallbackRecordBytes + len(own)
	w.bytes, f.bytes, f.buckets = w.bytes+bytes, f.bytes+bytes, f.buckets+1
	return true
}

// add charges a cost to a bucket that has a record, or below 0 takes it back.
func (f *fallback) add(k windowKey, a rules.Applied, cost int64) {
	w, i := f.find(k, a.Bucket.ID)
	s := *w.record(i)
	s.units += cost
	if a.Reserve != nil {
		s.reserved += cost
	}
	w.put(i, s)
}

// put keeps a record that was changed.
func (w *windowSpending) put(i uint32, s spent) {
	before := *w.record(i)
	w.units += s.units - before.units
	w.due += max(s.due()-s.settled, 0) - max(before.due()-before.settled, 0)
	if s.due() > s.settled && !s.waits {
		s.waits = true
		w.turns = append(w.turns, i)
	}
	*w.record(i) = s
}

// unsettled adds to all what the store is to be told of, as far as the list may become so long. Each
// is looked at once, and comes last in the next turn.
func (w *windowSpending) unsettled(k windowKey, all []localSpend, most int) []localSpend {
	waiting := w.turns
	for len(waiting) > 0 && len(all) < most {
		i := waiting[0]
		waiting = waiting[1:]
		s := w.record(i)
		if s.due() <= s.settled {
			s.waits = false
			continue
		}
		all = append(all, localSpend{k.head + w.ids.at(s.id), k.number, s.due(), k})
		w.told = append(w.told, i)
	}
	w.turns = append(waiting, w.told...)
	w.told = w.told[:0]
	return all
}

// idRef is where an id stands in an idList.
type idRef uint32

// idList keeps ids one behind the other, in blocks.
type idList struct {
	blocks [][]byte
}

// idBlockBytes is the size of a block: an idRef has 16 bits for the place in it, and as many for
// the block.
const idBlockBytes = 1 << 16

// add keeps an id.
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

// at returns the id that add kept.
func (l *idList) at(r idRef) string {
	b := l.blocks[r>>16][r&(idBlockBytes-1):]
	return string(b[2 : 2+(int(b[0])<<8|int(b[1]))])
}

// headParts is how many netstrings at the beginning of a bucket's id name its limit: domain, name,
// algorithm and window.
const headParts = 4

// headOf returns the part of a bucket's id that it shares with all buckets of its limit; empty
// where there is none.
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

// refusedBuckets returns how many requests were denied because there was no memory for their
// buckets.
func (f *fallback) refusedBuckets() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refused
}

// fullLogged is when, and after how many requests, it was last logged that the meter is full.
type fullLogged struct {
	at      time.Time
	refused int64
}

const (
	// fullLookedEvery is how often it is looked whether the meter is full, and fullLoggedEvery how often that is logged at most.
	fullLookedEvery = 500 * time.Millisecond
	fullLoggedEvery = time.Minute
)

// watchFallback logs that the meter is full, until ctx ends.
func (l *Limiter) watchFallback(ctx context.Context) {
	var full fullLogged
	repeat.Every(ctx, fullLookedEvery, func(time.Time) {
		full = l.tellFull(full, l.config.Now())
	})
}

// tellFull logs, at most once a minute, that buckets are denied because the meter is full.
func (l *Limiter) tellFull(last fullLogged, now time.Time) fullLogged {
	refused := l.fallback.refusedBuckets()
	if refused == last.refused || !last.at.IsZero() && now.Sub(last.at) < fullLoggedEvery {
		return last
	}
	l.log.Warn("too many buckets are spent of without the store: others are denied until windows end",
		"requests", refused-last.refused, "megabytes", maxFallbackBytes>>20)
	return fullLogged{now, refused}
}
