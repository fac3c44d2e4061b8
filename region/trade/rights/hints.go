package rights

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/policy"
	hintv1 "github.com/quotad/quotad/proto/hint/v1"
	"github.com/quotad/quotad/quantity"
)

const (
	// hintsShown is how long a hint is passed on: longer than it takes until its node repeats it.
	hintsShown = 5 * time.Second
	// hintsRemembered is how long a hint of another node is remembered, so that it does not count
	// as news again. This node's own hints are remembered for hintsShown only: a flood of keys
	// brings thousands a second, and none of them is dropped for want of room. When such a hint
	// comes back later, this node knows it by its incarnation.
	hintsRemembered = time.Minute
	// maxHints bounds the hints remembered, and maxHintsBytes the bytes they take. Hints of
	// further buckets are dropped and counted. A node's own hints are never dropped: there are only
	// as many as the machine has buckets in view.
	maxHints      = 100_000
	maxHintsBytes = 48 << 20
	// maxSources bounds the nodes, of all regions together, whose hints are remembered.
	maxSources = 1024
	// maxBucketBytes is the longest bucket id that a hint may name, and maxHintBytes the longest
	// hint that is taken in, in bytes.
	maxBucketBytes = policy.MaxBucketIDBytes
	maxHintBytes   = maxBucketBytes + 512
	// maxStateBytes bounds what is sent in one exchange of whole states. It is well below
	// gossip.MaxState, beyond which nothing at all would be sent.
	maxStateBytes = 3 << 20
	// hintFraming is the most bytes that stand before a hint in a list of hints.
	hintFraming = 4
)

// Hints is the state that gossip spreads: for every (region, node, bucket) the hint with the
// highest (incarnation, sequence). A merge takes a maximum, so it is commutative, associative and
// idempotent. It is safe for concurrent use.
type Hints struct {
	region, node string
	incarnation  uint64
	now          func() time.Time
	inDocument   func(region string) bool // nil: every region is in the document
	// Called for every hint that was news and not this node's own, hints of mates included.
	news func(exchange.Hint)

	mu       sync.Mutex
	sequence uint64
	known    map[hintKey]*knownHint
	sources  map[source]int // how many hints of each node are known
	bytes    int            // that all known hints take
	HintNumbers
}

type hintKey struct{ region, node, bucket string }

// source names a node that sends hints.
type source struct{ region, node string }

func (k hintKey) source() source { return source{k.region, k.node} }

func (k hintKey) size() int { return len(k.region) + len(k.node) + len(k.bucket) }

// gossiped returns a name for the hints of one node on one bucket. Gossip passes on only the newest
// hint of each name. The name is a hash, because bucket ids may be longer than a name in gossip. If
// two have the same hash, they displace each other's hints.
func (k hintKey) gossiped() string {
	return strconv.FormatUint(xxhash.Sum64String(k.region+"\x00"+k.node+"\x00"+k.bucket), 36)
}

type knownHint struct {
	hint *hintv1.Hint
	at   time.Time // when it was heard here
	size int       // its bytes in a whole state
}

func newHints(region, node string, incarnation uint64, now func() time.Time,
	news func(exchange.Hint)) *Hints {
	return &Hints{region: region, node: node, incarnation: incarnation, now: now, news: news,
		known: map[hintKey]*knownHint{}, sources: map[source]int{}}
}

// Publish takes in a hint of this node and returns it as a small change to broadcast.
func (s *Hints) Publish(h exchange.Hint) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sequence++
	p := &hintv1.Hint{Region: s.region, Node: s.node, Bucket: []byte(h.Bucket),
		Incarnation: s.incarnation,
		Sequence:    s.sequence, Cell: int64(h.Cell), Used: int64(h.Used), RateMilli: int64(h.Rate),
		Share: int64(h.Share), Spare: int64(h.Spare),
		Total: int64(h.Total), SpareBurst: int64(h.SpareBurst), Large: int64(h.Large),
		CappedMilli: int64(h.Capped)}
	s.take(p, s.now(), true)
	return proto.Marshal(&hintv1.Hints{Hints: []*hintv1.Hint{p}})
}

// MarshalBinary returns the hints that are younger than hintsShown. If they are more than one
// exchange carries, it returns the newest of them and counts the others as LeftOut. A hint that was
// left out is among the newest again as soon as its node repeats it.
func (s *Hints) MarshalBinary() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var fresh []*knownHint
	size := 0
	for _, k := range s.known {
		if now.Sub(k.at) <= hintsShown {
			fresh = append(fresh, k)
			size += k.size
		}
	}
	if size > maxStateBytes {
		slices.SortFunc(fresh, func(a, b *knownHint) int { return b.at.Compare(a.at) })
	}
	all := &hintv1.Hints{}
	size = 0
	for n, k := range fresh {
		if size += k.size; size > maxStateBytes {
			s.LeftOut += int64(len(fresh) - n)
			break
		}
		all.Hints = append(all.Hints, k.hint)
	}
	return proto.Marshal(all)
}

// Merge takes in a whole state or a small change. It leaves out and counts hints that nobody may
// send, and hints for which there is no room. If b is not a list of hints, Merge takes in none of
// it.
func (s *Hints) Merge(b []byte) (bool, error) {
	var scratch hintv1.Hint
	if err := eachHint(b,
		func(raw []byte) error { return proto.Unmarshal(raw, &scratch) }); err != nil {
		return false, err
	}
	fresh, err := s.takeAll(b)
	if err != nil {
		return false, err
	}
	for _, h := range fresh {
		if h.GetRegion() != s.region || h.GetNode() != s.node {
			s.news(exchange.Hint{Region: h.GetRegion(), Node: h.GetNode(),
				Bucket: string(h.GetBucket()), Cell: quantity.Cell(h.GetCell()),
				Used: quantity.Units(h.GetUsed()), Rate: quantity.MilliRate(h.GetRateMilli()),
				Share: quantity.Units(h.GetShare()), Spare: quantity.Units(h.GetSpare()),
				Total: quantity.Units(h.GetTotal()), SpareBurst: quantity.Units(h.GetSpareBurst()),
				Large: quantity.Units(h.GetLarge()), Capped: quantity.MilliRate(h.GetCappedMilli())})
		}
	}
	return len(fresh) > 0, nil
}

// takeAll keeps those hints that are news, and returns them.
func (s *Hints) takeAll(b []byte) (fresh []*hintv1.Hint, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	h := &hintv1.Hint{}
	err = eachHint(b, func(raw []byte) error {
		if len(raw) > maxHintBytes {
			s.Refused++
			return nil
		}
		if err := proto.Unmarshal(raw, h); err != nil {
			return err
		}
		if isNews := s.take(h, now, false); isNews {
			fresh = append(fresh, h)
			h = &hintv1.Hint{}
		}
		return nil
	})
	return fresh, err
}

// eachHint calls f with the bytes of each hint in a list. The hints are not decoded all at once: a
// hint of two bytes takes a hundred times as much memory when decoded.
func eachHint(b []byte, f func(raw []byte) error) error {
	const field = 1 // hints
	for len(b) > 0 {
		num, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if num != field || kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(num, kind, b); n < 0 {
				return protowire.ParseError(n)
			}
			b = b[n:]
			continue
		}
		raw, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		if err := f(raw); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// take keeps a hint if it may be sent, is newer than the known one, and fits. It reports whether it
// kept the hint. A hint of this node's own (own) always fits.
func (s *Hints) take(h *hintv1.Hint, now time.Time, own bool) bool {
	key := hintKey{h.GetRegion(), h.GetNode(), string(h.GetBucket())}
	old := s.known[key]
	if old != nil && cmp.Or(cmp.Compare(h.GetIncarnation(), old.hint.GetIncarnation()),
		cmp.Compare(h.GetSequence(), old.hint.GetSequence())) <= 0 {
		return false
	}
	size := proto.Size(h) + hintFraming
	switch {
	case own:
	// Our own hint, come back from other nodes.
	case s.ours(key) && h.GetIncarnation() == s.incarnation:
		return false
	case old == nil && !s.sayable(key):
		s.Refused++
		return false
	case !s.room(key, old, size):
		s.Dropped++
		return false
	}
	if old != nil {
		s.drop(key, old)
	}
	s.known[key] = &knownHint{hint: h, at: now, size: size}
	s.bytes += size + key.size()
	s.sources[key.source()]++
	return true
}

// ours reports whether a hint is this node's own, of this life or an earlier one.
func (s *Hints) ours(k hintKey) bool { return k.region == s.region && k.node == s.node }

// room reports whether there is room for a hint of size bytes. If old is not nil, the hint replaces
// it.
func (s *Hints) room(k hintKey, old *knownHint, size int) bool {
	if old != nil {
		return size <= old.size || s.bytes+size-old.size <= maxHintsBytes
	}
	return len(s.known) < maxHints && s.bytes+size+k.size() <= maxHintsBytes &&
		(s.sources[k.source()] > 0 || len(s.sources) < maxSources)
}

// drop forgets a hint.
func (s *Hints) drop(key hintKey, k *knownHint) {
	delete(s.known, key)
	s.bytes -= k.size + key.size()
	if of := key.source(); s.sources[of] > 1 {
		s.sources[of]--
	} else {
		delete(s.sources, of)
	}
}

// sayable reports whether such a node may exist and may send a hint on such a bucket.
func (s *Hints) sayable(k hintKey) bool {
	return len(k.bucket) >= 1 && len(k.bucket) <= maxBucketBytes && plainName(k.region) &&
		plainName(k.node) &&
		(s.inDocument == nil || s.inDocument(k.region))
}

// plainName reports whether text may be the name of a region or a node.
func plainName(text string) bool {
	if text == "" || len(text) > policy.MaxNameBytes {
		return false
	}
	for _, c := range []byte(text) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_',
			c == '.':
		default:
			return false
		}
	}
	return true
}

// Lost returns how many hints were not kept for want of room.
func (s *Hints) Lost() int64 { return s.Counts().Dropped }

// HintNumbers counts the hints that were not kept or not passed on since the start.
type HintNumbers struct {
	Dropped int64 // for want of room
	// Refused: nobody may send them, because they are too long, name a region that the document
	// does not have, or name an impossible node or bucket.
	Refused int64
	LeftOut int64 // left out of whole states, which would have been too large
}

// Counts returns the numbers as of now.
func (s *Hints) Counts() HintNumbers {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.HintNumbers
}

// Forget drops hints so old that no node can send them again as news.
func (s *Hints) Forget(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, k := range s.known {
		longest := hintsRemembered
		if s.ours(key) && k.hint.GetIncarnation() == s.incarnation {
			longest = hintsShown
		}
		if now.Sub(k.at) > longest {
			s.drop(key, k)
		}
	}
}
