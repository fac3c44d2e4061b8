package region

import (
	"cmp"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/policy"
	hintv1 "github.com/quotad/quotad/proto/hint/v1"
)

const (
	// hintsShown is how long a hint is passed on: longer than it takes until the node says it again.
	hintsShown = 5 * time.Second
	// hintsRemembered is how long a hint is remembered, so that it is not taken for news again.
	hintsRemembered = time.Minute
	// mostHints bounds the hints remembered; further buckets' are dropped.
	mostHints = 100_000
)

// hints is the state that gossip spreads: of every (region, node, bucket) the hint with the highest (incarnation,
// sequence). Merging is a maximum, so it is commutative, associative and idempotent. Safe for concurrent use.
type hints struct {
	region, node string
	incarnation  uint64
	now          func() time.Time
	news         func(exchange.Hint) // called for every hint that was news and not this node's own, mates' included

	mu       sync.Mutex
	sequence uint64
	known    map[hintKey]*knownHint
	dropped  int64
}

type hintKey struct{ region, node, bucket string }

// gossiped names the hints of which the newest alone is worth passing on: one node's on one bucket. The names may be longer than
// a key of the gossip, so it is a hash; two of one hash displace each other's hints.
func (k hintKey) gossiped() string {
	return strconv.FormatUint(xxhash.Sum64String(k.region+"\x00"+k.node+"\x00"+k.bucket), 36)
}

type knownHint struct {
	hint *hintv1.Hint
	at   time.Time // when it was heard here
}

func newHints(region, node string, incarnation uint64, now func() time.Time, news func(exchange.Hint)) *hints {
	return &hints{region: region, node: node, incarnation: incarnation, now: now, news: news, known: map[hintKey]*knownHint{}}
}

// publish takes in a hint of our own and returns it as a small change to broadcast.
func (s *hints) publish(h exchange.Hint) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sequence++
	p := &hintv1.Hint{Region: s.region, Node: s.node, Bucket: []byte(h.Bucket), Incarnation: s.incarnation,
		Sequence: s.sequence, Cell: h.Cell, Used: h.Used, RateMilli: h.Rate, Share: h.Share, Spare: h.Spare,
		Total: h.Total, SpareBurst: h.SpareBurst}
	s.take(p, s.now())
	return proto.Marshal(&hintv1.Hints{Hints: []*hintv1.Hint{p}})
}

// MarshalBinary returns what is fresh of the whole state.
func (s *hints) MarshalBinary() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	all := &hintv1.Hints{}
	for _, k := range s.known {
		if now.Sub(k.at) <= hintsShown {
			all.Hints = append(all.Hints, k.hint)
		}
	}
	return proto.Marshal(all)
}

// Merge takes in a whole state or a small change.
func (s *hints) Merge(b []byte) (bool, error) {
	var all hintv1.Hints
	if err := proto.Unmarshal(b, &all); err != nil {
		return false, err
	}
	var fresh []*hintv1.Hint
	s.mu.Lock()
	now := s.now()
	for _, h := range all.GetHints() {
		if s.take(h, now) {
			fresh = append(fresh, h)
		}
	}
	s.mu.Unlock()
	for _, h := range fresh {
		if h.GetRegion() != s.region || h.GetNode() != s.node {
			s.news(exchange.Hint{Region: h.GetRegion(), Node: h.GetNode(), Bucket: string(h.GetBucket()), Cell: h.GetCell(),
				Used: h.GetUsed(), Rate: h.GetRateMilli(), Share: h.GetShare(), Spare: h.GetSpare(),
				Total: h.GetTotal(), SpareBurst: h.GetSpareBurst()})
		}
	}
	return len(fresh) > 0, nil
}

// take keeps a hint if it is newer than the one known, and says whether it was.
func (s *hints) take(h *hintv1.Hint, now time.Time) bool {
	key := hintKey{h.GetRegion(), h.GetNode(), string(h.GetBucket())}
	old := s.known[key]
	if old != nil && cmp.Or(cmp.Compare(h.GetIncarnation(), old.hint.GetIncarnation()),
		cmp.Compare(h.GetSequence(), old.hint.GetSequence())) <= 0 {
		return false
	}
	if old == nil && (len(s.known) >= mostHints || len(key.bucket) > policy.MaxBucketIDBytes) { // no bucket has a longer id
		s.dropped++
		return false
	}
	s.known[key] = &knownHint{hint: h, at: now}
	return true
}

// lost returns how many hints were not kept because too many were.
func (s *hints) lost() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}

// forget drops hints that nobody can take for news any more.
func (s *hints) forget(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.known, func(_ hintKey, k *knownHint) bool { return now.Sub(k.at) > hintsRemembered })
}
