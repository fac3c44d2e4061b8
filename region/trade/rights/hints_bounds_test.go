package rights

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/gossip"
	"github.com/quotad/quotad/policy"
	hintv1 "github.com/quotad/quotad/proto/hint/v1"
)

// TestStateIsCutToWhatFits: 18,000 buckets with long values are more than an exchange carries. The
// newest are sent, and the others counted. An exchange that has room for all sends all.
func TestStateIsCutToWhatFits(t *testing.T) {
	s, _ := listening()
	now := time.Unix(1000, 0)
	s.now = func() time.Time { return now }
	const buckets = 18_000
	value := strings.Repeat("v", 1100)
	for i := range buckets {
		now = now.Add(100 * time.Microsecond)
		if _, err := s.Publish(exchange.Hint{Bucket: fmt.Sprintf("%05d %s", i,
			value)}); err != nil {
			t.Fatal(err)
		}
	}
	b := whole(t, s)
	var all hintv1.Hints
	suite.Must(t, proto.Unmarshal(b, &all))
	sent := len(all.GetHints())
	if len(b) > maxStateBytes || len(b) < maxStateBytes-8*len(value) ||
		maxStateBytes >= gossip.MaxState {
		t.Errorf("the state has %d bytes, want somewhat less than %d", len(b), maxStateBytes)
	}
	for _, h := range all.GetHints() {
		if bucket := string(h.GetBucket()); bucket < fmt.Sprintf("%05d", buckets-sent) {
			t.Fatalf("%.5s is sent, one of the oldest, in a state of %d", bucket, sent)
		}
	}
	if got := s.Counts().LeftOut; got != int64(buckets-sent) {
		t.Errorf("%d were counted as left out, want %d", got, buckets-sent)
	}
	now = now.Add(hintsShown)
	if _, err := s.Publish(exchange.Hint{Bucket: "a"}); err != nil {
		t.Fatal(err)
	}
	whole(t, s)
	if got := s.Counts().LeftOut; got != int64(buckets-sent) {
		t.Errorf("of a state that fits %d were left out", got-int64(buckets-sent))
	}
}

// TestHintsNobodyMaySay: hints with impossible or too long names and bucket ids, or of a region
// that the document does not have, are refused and counted. Valid hints beside them are taken in.
func TestHintsNobodyMaySay(t *testing.T) {
	long := strings.Repeat("x", 64)
	for name, h := range map[string]*hintv1.Hint{
		"no region":             hintOf("", "n1", "a", 1, 1),
		"no node":               hintOf("there", "", "a", 1, 1),
		"no bucket":             hintOf("there", "n1", "", 1, 1),
		"a long region":         hintOf(long, "n1", "a", 1, 1),
		"a long node":           hintOf("there", long, "a", 1, 1),
		"a long bucket":         hintOf("there", "n1", strings.Repeat("b", maxBucketBytes+1), 1, 1),
		"a node with escapes":   hintOf("there", "\x1b[31mn1", "a", 1, 1),
		"of no region there is": hintOf("elsewhere", "n1", "a", 1, 1),
	} {
		s, heard := listening()
		s.inDocument = func(region string) bool { return region != "elsewhere" }
		merge(t, s, encode(t, h, hintOf("there", "n1", "good", 1, 1)))
		if s.Counts().Refused != 1 || len(s.known) != 1 || len(*heard) != 1 {
			t.Errorf("%s: %d refused, %d known, %d heard", name, s.Counts().Refused, len(s.known),
				len(*heard))
		}
	}
}

// TestHintsAreBoundedInBytesAndSources: a sender that invents nodes, or sends ever longer hints on
// known buckets, cannot fill the memory, not even in this node's own name. This node's own hints
// are kept.
func TestHintsAreBoundedInBytesAndSources(t *testing.T) {
	s, _ := listening()
	for i := range maxSources + 10 {
		merge(t, s, encode(t, hintOf("there", fmt.Sprint("n", i), "a", 1, 1)))
	}
	if len(s.sources) != maxSources || s.Counts().Dropped != 10 {
		t.Errorf("%d sources, %d dropped", len(s.sources), s.Counts().Dropped)
	}
	s.Forget(time.Now().Add(2 * hintsRemembered))
	if len(s.sources) != 0 || s.bytes != 0 {
		t.Errorf("when all is forgotten %d sources and %d bytes are not", len(s.sources), s.bytes)
	}
	for sequence := range uint64(3) {
		for i := range 25_000 {
			h := hintOf("here", "n1", fmt.Sprint(i), 9, sequence)
			// Larger than before, by fields that this version does not know.
			if sequence > 0 {
				h.ProtoReflect().SetUnknown(append([]byte{0xfa, 0x3f, 0x80, 0x12},
					make([]byte, 0x900)...))
			}
			merge(t, s, encode(t, h))
		}
	}
	if s.bytes > maxHintsBytes || s.bytes < maxHintsBytes/2 || s.Counts().Dropped == 10 {
		t.Errorf("%d bytes are kept, %d hints dropped", s.bytes, s.Counts().Dropped)
	}
	if _, err := s.Publish(exchange.Hint{Bucket: "own"}); err != nil ||
		s.known[hintKey{"here", "n1", "own"}] == nil {
		t.Errorf("this node's own hint is not kept: %v", err)
	}
}

// TestSmallHintsTakeLittle: taking in a whole state of empty hints, two bytes each, uses no more
// memory than the state has bytes.
func TestSmallHintsTakeLittle(t *testing.T) {
	suite.OneGoroutine(t)
	s, _ := listening()
	b := bytes.Repeat([]byte{0x0a, 0x00}, 1<<20)
	if news, err := s.Merge(b); news || err != nil || s.Counts().Refused != 1<<20 {
		t.Errorf("news %v, %v, %d refused", news, err, s.Counts().Refused)
	}
	small := testing.AllocsPerRun(3, func() { _, _ = s.Merge(b[:1<<10]) })
	large := testing.AllocsPerRun(3, func() { _, _ = s.Merge(b[:1<<16]) })
	if large > small+10 {
		t.Errorf("%v allocations for 64 times the hints of %v", large, small)
	}
}

// TestOwnHintsAreForgottenSoon: a node keeps its own hints on a flood of keys only as long as it
// passes them on. When they come back from other nodes, they are no news.
func TestOwnHintsAreForgottenSoon(t *testing.T) {
	s, _ := listening()
	now := time.Unix(1000, 0)
	s.now = func() time.Time { return now }
	var said [][]byte
	for second := range 60 { // a key a millisecond
		for i := range 1000 {
			b, err := s.Publish(exchange.Hint{Bucket: fmt.Sprintf("%d %d", second, i)})
			suite.Must(t, err)
			if i == 0 {
				said = append(said, b)
			}
		}
		now = now.Add(time.Second)
		s.Forget(now)
		if most := 1000 * int(hintsShown/time.Second); len(s.known) > most {
			t.Fatalf("%d are remembered after %d s, want at most %d", len(s.known), second+1, most)
		}
	}
	known := len(s.known)
	for i, b := range said {
		if merge(t, s, b) || len(s.known) != known {
			t.Errorf("what this node said in second %d came back as news, or is kept anew", i)
		}
	}
}

// TestHintsOfNoBucketAreDropped: a hint with a bucket id longer than any real one is not kept or
// passed on, but counted.
func TestHintsOfNoBucketAreDropped(t *testing.T) {
	s, heard := listening()
	long := strings.Repeat("b", policy.MaxBucketIDBytes)
	if news := merge(t, s, encode(t, hintOf("there", "n1", long, 1, 1),
		hintOf("there", "n1", long+"b", 1, 2))); !news || len(*heard) != 1 {
		t.Errorf("%d hints are heard", len(*heard))
	}
	if s.Counts().Refused != 1 || len(whole(t, s)) > 2*len(long) {
		t.Errorf("%d are counted, the state has %d bytes", s.Counts().Refused, len(whole(t, s)))
	}
}
