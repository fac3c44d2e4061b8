package oracle

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

func TestSequencesAgainstSet(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		var s sequences
		twin := map[uint64]bool{}
		number := rapid.OneOf(rapid.Uint64Range(0, 40), rapid.Uint64Range(4090, 4100),
			rapid.Uint64Range(math.MaxUint64-10, math.MaxUint64))
		for _, n := range rapid.SliceOfN(number, 0, 80).Draw(t, "numbers") {
			want := seenFirst
			if twin[n] {
				want = seenTwice
			}
			twin[n] = true
			if got := s.add(n); got != want {
				t.Fatalf("number %d: %d, want %d", n, got, want)
			}
		}
	})
}

func TestSequencesForgetTheLowest(t *testing.T) {
	var s sequences
	for page := range uint64(maxPages + 10) {
		if got := s.add(page * pageBits); got != seenFirst {
			t.Fatalf("page %d: %d", page, got)
		}
	}
	if len(s.pages) != maxPages {
		t.Errorf("%d pages kept, want %d", len(s.pages), maxPages)
	}
	if got := s.add(5); got != seenTooOld {
		t.Errorf("a forgotten number: %d, want too old", got)
	}
	if got := s.add(10 * pageBits); got != seenTwice {
		t.Errorf("the lowest number still kept: %d, want twice", got)
	}
}
