package rights

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
	hintv1 "github.com/quotad/quotad/proto/hint/v1"
)

// listening returns hints of node here/n1 and what they report as news.
func listening() (*Hints, *[]exchange.Hint) {
	var heard []exchange.Hint
	return newHints("here", "n1", 5, time.Now, func(h exchange.Hint) { heard = append(heard, h) }),
		&heard
}

// hintOf makes a hint whose contents follow from its version, as an honest node's do.
func hintOf(region, node, bucket string, incarnation, sequence uint64) *hintv1.Hint {
	return &hintv1.Hint{Region: region, Node: node, Bucket: []byte(bucket),
		Incarnation: incarnation, Sequence: sequence,
		Cell: int64(sequence), Used: int64(incarnation), RateMilli: 3, Share: 4, Spare: 5, Total: 6,
		SpareBurst: 7}
}

func encode(t testing.TB, all ...*hintv1.Hint) []byte {
	t.Helper()
	b, err := proto.Marshal(&hintv1.Hints{Hints: all})
	suite.Must(t, err)
	return b
}

func merge(t testing.TB, s *Hints, b []byte) (news bool) {
	t.Helper()
	news, err := s.Merge(b)
	suite.Must(t, err)
	return news
}

func whole(t testing.TB, s *Hints) []byte {
	t.Helper()
	b, err := s.MarshalBinary()
	suite.Must(t, err)
	return b
}

// versions is the state as a set: what is known of whom, and how new it is.
func (s *Hints) versions() map[hintKey]string {
	all := map[hintKey]string{}
	for key, k := range s.known {
		all[key] = fmt.Sprint(k.hint.GetIncarnation(), k.hint.GetSequence(), k.hint.GetCell(),
			k.hint.GetUsed())
	}
	return all
}

func TestHintsMergeLaws(t *testing.T) {
	one := rapid.Custom(func(r *rapid.T) *hintv1.Hint {
		return hintOf(rapid.SampledFrom([]string{"here", "there"}).Draw(r, "region"),
			rapid.SampledFrom([]string{"n1", "n2"}).Draw(r, "node"),
			rapid.SampledFrom([]string{"a", "b", "\xff"}).Draw(r, "bucket"),
			rapid.Uint64Range(0, 3).Draw(r, "incarnation"), rapid.Uint64Range(0, 3).Draw(r,
				"sequence"))
	})
	state := func(parts ...[]byte) *Hints {
		s, _ := listening()
		for _, b := range parts {
			merge(t, s, b)
		}
		return s
	}
	suite.Check(t, func(r *rapid.T) {
		draw := func(name string) []byte {
			return encode(t, rapid.SliceOfN(one, 0, 8).Draw(r, name)...)
		}
		a, b, c := draw("a"), draw("b"), draw("c")
		if ab, ba := state(a, b), state(b, a); !maps.Equal(ab.versions(), ba.versions()) {
			r.Fatalf("not commutative: %v and %v", ab.versions(), ba.versions())
		}
		left, right := state(whole(t, state(a, b)), c), state(a, whole(t, state(b, c)))
		if !maps.Equal(left.versions(), right.versions()) {
			r.Fatalf("not associative: %v and %v", left.versions(), right.versions())
		}
		s := state(a, b)
		before := s.versions()
		for _, again := range [][]byte{a, b, whole(t, s), encode(t)} {
			if merge(t, s, again) || !maps.Equal(s.versions(), before) {
				r.Fatal("not idempotent")
			}
		}
	})
}

func TestHintsTakeTheNewest(t *testing.T) {
	for name, tc := range map[string]struct {
		incarnation, sequence uint64
		news                  bool
	}{
		"the next":                            {2, 11, true},
		"the same":                            {2, 10, false},
		"one before":                          {2, 9, false},
		"a later start, counting anew":        {3, 1, true},
		"an earlier start that counted far":   {1, 99, false},
		"the largest numbers there are":       {1<<64 - 1, 1<<64 - 1, true},
		"none at all, as from another schema": {0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, heard := listening()
			merge(t, s, encode(t, hintOf("there", "n1", "a", 2, 10)))
			if got := merge(t, s,
				encode(t, hintOf("there", "n1", "a", tc.incarnation,
					tc.sequence))); got != tc.news {
				t.Errorf("news %v", got)
			}
			if want := map[bool]int{false: 1, true: 2}[tc.news]; len(*heard) != want {
				t.Errorf("%d reported, want %d", len(*heard), want)
			}
		})
	}
}

// TestHintsReportOthersOnly: the machine gets a hint as it was sent, also a mate's, but never this
// node's own. Nor does it get what this node said before a restart, which other nodes still have.
func TestHintsReportOthersOnly(t *testing.T) {
	s, heard := listening()
	if _, err := s.Publish(exchange.Hint{Bucket: "a"}); err != nil {
		t.Fatal(err)
	}
	if !merge(t, s, encode(t, hintOf("here", "n2", "a", 1, 1), hintOf("here", "n1", "b", 4, 9),
		hintOf("there", "n1", "\xff", 1, 2))) {
		t.Error("no news")
	}
	want := []exchange.Hint{
		{Region: "here", Node: "n2", Bucket: "a", Cell: 1, Used: 1, Rate: 3, Share: 4, Spare: 5,
			Total: 6, SpareBurst: 7},
		{Region: "there", Node: "n1", Bucket: "\xff", Cell: 2, Used: 1, Rate: 3, Share: 4, Spare: 5,
			Total: 6, SpareBurst: 7},
	}
	if !slices.Equal(*heard, want) {
		t.Errorf("heard %+v, want %+v", *heard, want)
	}
	if got := len(s.versions()); got != 4 {
		t.Errorf("%d passed on, want the two of its own, the mate's and the other region's", got)
	}
}

func TestHintsPublish(t *testing.T) {
	s, heard := listening()
	other, otherHeard := listening()
	other.node = "n2" // a mate
	h := exchange.Hint{Region: "forged", Node: "forged", Bucket: "\xffa", Cell: 7, Used: 1, Rate: 2,
		Share: 3, Spare: 4, Total: 5, SpareBurst: 6}
	for sequence := range uint64(3) {
		b, err := s.Publish(h)
		suite.Must(t, err)
		if merge(t, s, b) {
			t.Error("our own hint came back as news")
		}
		if !merge(t, other, b) || merge(t, other, b) {
			t.Errorf("hint %d is not news elsewhere, once", sequence)
		}
	}
	want := h
	want.Region, want.Node = "here", "n1"
	if len(*heard) != 0 || !slices.Equal(*otherHeard, []exchange.Hint{want, want, want}) {
		t.Errorf("heard here %v, there %v, want %v three times", *heard, *otherHeard, want)
	}
	if got := s.known[hintKey{"here", "n1", "\xffa"}].hint; got.GetIncarnation() != 5 ||
		got.GetSequence() != 3 {
		t.Errorf("version %d.%d, want 5.3", got.GetIncarnation(), got.GetSequence())
	}
}

func TestHintsAge(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, heard := listening()
		shown := func() int {
			var all hintv1.Hints
			suite.Must(t, proto.Unmarshal(whole(t, s), &all))
			return len(all.GetHints())
		}
		first := encode(t, hintOf("there", "n1", "a", 1, 1))
		merge(t, s, first)
		time.Sleep(time.Second)
		if _, err := s.Publish(exchange.Hint{Bucket: "b"}); err != nil {
			t.Fatal(err)
		}
		merge(t, s, encode(t, hintOf("here", "n2", "b", 1, 1)))
		for _, step := range []struct {
			after time.Duration
			shown int
		}{{0, 3}, {hintsShown - time.Second, 3}, {time.Microsecond, 2}, {time.Second, 0}} {
			time.Sleep(step.after)
			if got := shown(); got != step.shown {
				t.Errorf("%v later %d are passed on, want %d", step.after, got, step.shown)
			}
		}
		if merge(t, s, first) {
			t.Error("an old hint that somebody still had was news again")
		}
		time.Sleep(hintsRemembered - hintsShown - time.Second)
		s.Forget(time.Now())
		if got := len(s.known); got != 1 {
			t.Errorf("after a minute %d are remembered, want 1, the mate's", got)
		}
		time.Sleep(time.Second)
		s.Forget(time.Now())
		if len(s.known) != 0 || !merge(t, s, first) || len(*heard) != 3 {
			t.Errorf("remembered %v, heard %v", s.versions(), *heard)
		}
	})
}

func TestHintsAreBounded(t *testing.T) {
	suite.OneGoroutine(t)
	s, heard := listening()
	all := make([]*hintv1.Hint, maxHints+10)
	for i := range all {
		all[i] = hintOf("there", "n1", fmt.Sprint(i), 1, 1)
	}
	if !merge(t, s, encode(t, all...)) {
		t.Error("no news")
	}
	if len(s.known) != maxHints || s.Dropped != 10 || len(*heard) != maxHints {
		t.Errorf("%d known, %d dropped, %d heard", len(s.known), s.Dropped, len(*heard))
	}
	if merge(t, s, encode(t, hintOf("there", "n1", "one more", 1, 1))) {
		t.Error("a hint beyond the bound was news")
	}
	if !merge(t, s, encode(t, hintOf("there", "n1", "0", 1, 2))) {
		t.Error("a newer hint on a known bucket was dropped")
	}
}

func TestHintsRefuseGarbage(t *testing.T) {
	s, heard := listening()
	good := encode(t, hintOf("there", "n1", "a", 1, 1))
	for name, b := range map[string][]byte{
		"a cut message":        good[:len(good)-1],
		"text":                 []byte("hello"),
		"a length without end": {0x0a, 0xff, 0xff, 0xff, 0xff, 0x7f},
		"another wire type":    {0x08},
		"a name not in UTF-8":  {0x0a, 0x03, 0x0a, 0x01, 0xff},
	} {
		if news, err := s.Merge(b); err == nil || news {
			t.Errorf("%s: news %v, error %v", name, news, err)
		}
	}
	if news, err := s.Merge(nil); news || err != nil {
		t.Errorf("nothing: news %v, error %v", news, err)
	}
	if len(s.known) > 0 || len(*heard) > 0 {
		t.Errorf("garbage left %v, reported %v", s.versions(), *heard)
	}
}

func FuzzHintsMerge(f *testing.F) {
	f.Add(encode(f, hintOf("there", "n1", "a", 1, 1), hintOf("here", "n1", "b", 1, 1)))
	f.Add([]byte{0x0a, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, heard := listening()
		if _, err := s.Merge(b); err != nil && len(s.known) > 0 {
			t.Error("half a message was taken in")
		}
		for _, h := range *heard {
			if h.Region == "here" && h.Node == "n1" {
				t.Errorf("a hint of our own was reported: %+v", h)
			}
		}
		if merge(t, s, whole(t, s)) {
			t.Error("its own state was news")
		}
	})
}

// TestHintsConcurrently: gossip, the engine and the housekeeping call Merge, Publish, MarshalBinary
// and Forget at the same time.
func TestHintsConcurrently(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		heard := 0
		s := newHints("here", "n1", 1, time.Now, func(exchange.Hint) {
			mu.Lock()
			heard++
			mu.Unlock()
		})
		var callers sync.WaitGroup
		for i := range uint64(4) {
			callers.Go(func() {
				for n := range uint64(50) {
					_, err := s.Merge(encode(t, hintOf("there", fmt.Sprint(i), "a", 1, n+1)))
					_, err2 := s.Publish(exchange.Hint{Bucket: "b"})
					_, err3 := s.MarshalBinary()
					if err != nil || err2 != nil || err3 != nil {
						t.Error(err, err2, err3)
					}
					s.Forget(time.Now())
				}
			})
		}
		callers.Wait()
		if s.sequence != 200 || len(s.known) != 5 || heard != 200 {
			t.Errorf("sequence %d, %d known, %d heard", s.sequence, len(s.known), heard)
		}
	})
}
