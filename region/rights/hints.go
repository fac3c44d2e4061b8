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
)

const (
	// hintsShown is how long a hint is passed on: longer than it takes until the node says it again.
	hintsShown = 5 * time.Second
	// hintsRemembered is how long a hint of another node is remembered, so that it is not taken for news again. This node's
	// own, of which a flood of keys has thousands a second and none is dropped for want of room, are remembered for
	// hintsShown: what comes back of them is known by its incarnation.
	hintsRemembered = time.Minute
	// maxHints bounds the hints remembered, and maxHintsBytes what they take; further buckets' are dropped and counted. A
	// node's own are never dropped: there are as many as the machine has buckets in view.
	maxHints      = 100_000
	maxHintsBytes = 48 << 20
	// maxSources bounds the nodes, of all regions together, whose hints are remembered.
	maxSources = 1024
	// maxBucketBytes is the longest name of a bucket of which a hint is taken in, and maxHintBytes the longest hint.
	maxBucketBytes = policy.MaxBucketIDBytes
	maxHintBytes   = maxBucketBytes + 512
	// maxStateBytes bounds what is sent in one exchange of whole states: well below gossip.MaxState, beyond which nothing
	// would be.
	maxStateBytes = 3 << 20
	// hintFraming is the most that stands before a hint among others.
	hintFraming = 4
)

// Hints is the state that gossip spreads: of every (region, node, bucket) the hint with the highest (incarnation,
// sequence). Merging is a maximum, so it is commutative, associative and idempotent. Safe for concurrent use.
type Hints struct {
	region, node string
	incarnation  uint64
	now          func() time.Time
	inDocument   func(region string) bool // nil: every region is
	news         func(exchange.Hint)      // called for every hint that was news and not this node's own, mates' included

	mu       sync.Mutex
	sequence uint64
	known    map[hintKey]*knownHint
	sources  map[source]int // hints known by who said them
	bytes    int            // of the hints known
	HintNumbers
}

type hintKey struct{ region, node, bucket string }

// source is who says hints.
type source struct{ region, node string }

func (k hintKey) source() source { return source{k.region, k.node} }

func (k hintKey) size() int { return len(k.region) + len(k.node) + len(k.bucket) }

// gossiped names the hints of which the newest alone is worth passing on: one node's on one bucket. The names may be longer than
// a key of the gossip, so it is a hash; two of one hash displace each other's hints.
func (k hintKey) gossiped() string {
	return strconv.FormatUint(xxhash.Sum64String(k.region+"\x00"+k.node+"\x00"+k.bucket), 36)
}

type knownHint struct {
	hint *hintv1.Hint
	at   time.Time // when it was heard here
	size int       // in a whole state
}

func newHints(region, node string, incarnation uint64, now func() time.Time, news func(exchange.Hint)) *Hints {
	return &Hints{region: region, node: node, incarnation: incarnation, now: now, news: news, known: map[hintKey]*knownHint{}, sources: map[source]int{}}
}

// Publish takes in a hint of our own and returns it as a small change to broadcast.
func (s *Hints) Publish(h exchange.Hint) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sequence++
	p := &hintv1.Hint{Region: s.region, Node: s.node, Bucket: []byte(h.Bucket), Incarnation: s.incarnation,
		Sequence: s.sequence, Cell: h.Cell, Used: h.Used, RateMilli: h.Rate, Share: h.Share, Spare: h.Spare,
		Total: h.Total, SpareBurst: h.SpareBurst}
	s.take(p, s.now(), true)
	return proto.Marshal(&hintv1.Hints{Hints: []*hintv1.Hint{p}})
}

// MarshalBinary returns what is fresh of the whole state: the newest of it, where all is more than an exchange carries. What
// is left out is counted, and is the newest again as soon as its node says it again.
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

// Merge takes in a whole state or a small change. Hints that nobody may say, or for which there is no room, are left out
// and counted; of bytes that are no hints at all none is taken in.
func (s *Hints) Merge(b []byte) (bool, error) {
	var scratch hintv1.Hint
	if err := eachHint(b, func(raw []byte) error { return proto.Unmarshal(raw, &scratch) }); err != nil {
		return false, err
	}
	fresh, err := s.takeAll(b)
	if err != nil {
		return false, err
	}
	for _, h := range fresh {
		if h.GetRegion() != s.region || h.GetNode() != s.node {
			s.news(exchange.Hint{Region: h.GetRegion(), Node: h.GetNode(), Bucket: string(h.GetBucket()), Cell: h.GetCell(),
				Used: h.GetUsed(), Rate: h.GetRateMilli(), Share: h.GetShare(), Spare: h.GetSpare(),
				Total: h.GetTotal(), SpareBurst: h.GetSpareBurst()})
		}
	}
	return len(fresh) > 0, nil
}

// takeAll keeps those of many hints that are news, and returns them.
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

// eachHint calls f with the bytes of each hint of many. Hints are not decoded all at once: of two bytes each they would
// take a hundred times their room.
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

// take keeps a hint if it may be said, is newer than the one known, and there is room, and says whether it was kept. For
// this node's own there always is.
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
	case s.ours(key) && h.GetIncarnation() == s.incarnation: // it comes back from others
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

// ours says whether a hint is one of this node's own, of this life or an earlier one.
func (s *Hints) ours(k hintKey) bool { return k.region == s.region && k.node == s.node }

// room says whether there is room for a hint, in the place of an older one if there is one.
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

// sayable says whether a node of that name, if there is one, may say something of that bucket.
func (s *Hints) sayable(k hintKey) bool {
	return len(k.bucket) >= 1 && len(k.bucket) <= maxBucketBytes && plainName(k.region) && plainName(k.node) &&
		(s.inDocument == nil || s.inDocument(k.region))
}

// plainName says whether text may be the name of a region or a node.
func plainName(text string) bool {
	if text == "" || len(text) > policy.MaxNameBytes {
		return false
	}
	for _, c := range []byte(text) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}

// Lost returns how many hints were not kept because too many were.
func (s *Hints) Lost() int64 { return s.Counts().Dropped }

// HintNumbers are the hints that were not kept or not passed on, since the start.
type HintNumbers struct {
	Dropped int64 // there was no room
	Refused int64 // nobody may say them: too long, of no region of the document, or of no name
	LeftOut int64 // of whole states, which they would have made too large
}

// Counts returns them.
func (s *Hints) Counts() HintNumbers {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.HintNumbers
}

// Forget drops hints that nobody can take for news any more.
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
