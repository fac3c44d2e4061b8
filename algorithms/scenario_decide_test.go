//go:build !race

package algorithms

import (
	"math"
	"slices"
	"testing"

	"github.com/quotad/quotad/quantity"
)

// onBoth is a request on two buckets of the party's store: its own, and a second one under other
// terms.
func (p *party) onBoth(second LimitTarget, costs ...quantity.Units) Decided {
	p.Helper()
	return p.Decide(*p.now, Decide{Fence: p.guard(), Commit: true, Costs: costs,
		Buckets: []LimitTarget{p.bucket(), second}})
}

// TestCostsOutOfRange: a cost is at least 1 and at most 2^51. If a list has any other cost, nothing
// of the list is charged: a negative cost would give units back, and one above 2^52 is not the
// number that the caller wrote. (Costs are integers in Go and written with all their digits, so a
// cost cannot be anything but a number.)
func TestCostsOutOfRange(t *testing.T) {
	for _, kind := range Kinds {
		terms := Terms{Kind: kind, Window: 1000, Cell: 1000, Tick: 1, Entitlement: 60}
		if kind.Bucket() {
			terms.Burst = 60
		}
		l, _, _ := parties(t, terms, terms)
		for _, bad := range []quantity.Units{0, -1, -60, math.MinInt64, MaxUnits + 1, 2 * MaxUnits,
			math.MaxInt64} {
			d := l.Decide(*l.now, Decide{Fence: l.guard(), Commit: true,
				Costs: []quantity.Units{7, bad, 7}, Buckets: []LimitTarget{l.bucket()}})
			if d.Status != StatusImplausible || len(d.Answers) > 0 {
				t.Errorf("%s: cost %d: %+v", kind, bad, d)
			}
		}
		l.denies(MaxUnits, -1)
		equal(t, string(kind)+": free after all of it", l.state().Free, 60)
	}
	var c Items
	c.Add(Decide{Costs: []quantity.Units{MaxUnits}})
	if args := c.Args(); args[len(args)-1] != int64(2251799813685248) {
		t.Errorf("the script is told a cost of 2^51 as %v", args[len(args)-1])
	}
}

// TestADenialSpendsNothingElsewhere: if a limit of 10 denies a request, the request costs nothing
// of a second limit of 100, whatever their order. Twelve requests of 1 cost 10 of the 100. Charging
// each bucket as it is checked would cost 12.
func TestADenialSpendsNothingElsewhere(t *testing.T) {
	for _, kind := range Kinds {
		wide := Terms{Kind: kind, Window: 1000, Cell: 1000, Tick: 1, Entitlement: 100}
		if kind.Bucket() {
			wide.Burst = 100
		}
		for _, order := range []string{"narrow first", "wide first"} {
			first, second := fixed(10), wide
			if order == "wide first" {
				first, second = wide, fixed(10)
			}
			l, _, _ := parties(t, first, fixed(0))
			d := l.onBoth(LimitTarget{Target: Target{Key: "second", Terms: second}},
				slices.Repeat([]quantity.Units{1}, 12)...)
			free := []quantity.Units{d.Buckets[0].Free, d.Buckets[1].Free}
			slices.Sort(free)
			equal(t, string(kind)+", "+order+": last admitted", d.Answers[11].Admitted, false)
			equal(t, string(kind)+", "+order+": left of 10", free[0], 0)
			equal(t, string(kind)+", "+order+": left of 100", free[1], 90)
		}
	}
}

// TestAShadowBucketNeverDenies: it reports what it would have said, and is charged only where it
// had room and the request was admitted. 12 requests on 10 in shadow and 11 in force: 11 admitted,
// 10 charged to the shadow bucket.
func TestAShadowBucketNeverDenies(t *testing.T) {
	l, _, _ := parties(t, fixed(11), fixed(0))
	d := l.onBoth(LimitTarget{Target: Target{Key: "shadow", Terms: fixed(10)}, Shadow: true},
		slices.Repeat([]quantity.Units{1}, 12)...)
	equal(t, "11th admitted", d.Answers[10].Admitted, true)
	equal(t, "11th, in shadow", d.Answers[10].Verdicts[1].Retry, 1000)
	equal(t, "12th admitted", d.Answers[11].Admitted, false)
	equal(t, "used", d.Buckets[0].Used, 11)
	equal(t, "used in shadow", d.Buckets[1].Used, 10)
}

// TestAShadowBucketIsNotChargedForDenials: three denied requests of 5 on 4 leave the shadow bucket
// as it was.
func TestAShadowBucketIsNotChargedForDenials(t *testing.T) {
	l, _, _ := parties(t, fixed(4), fixed(0))
	d := l.onBoth(LimitTarget{Target: Target{Key: "shadow", Terms: fixed(10)}, Shadow: true}, 5, 5,
		5)
	equal(t, "used in shadow", d.Buckets[1].Used, 0)
}

// TestAlternativesDenyTogether: of two alternative limits of 3 and 5 the first is full after 3
// requests and the second after 5: the sixth is denied, and what was full was not charged.
func TestAlternativesDenyTogether(t *testing.T) {
	l, _, _ := parties(t, fixed(100), fixed(0))
	few := LimitTarget{Target: Target{Key: "few", Terms: fixed(3)}, Alternative: true}
	more := LimitTarget{Target: Target{Key: "more", Terms: fixed(5)}, Alternative: true}
	for n := range 7 {
		d := l.Decide(*l.now, Decide{Fence: l.guard(), Commit: true, Costs: []quantity.Units{1},
			Buckets: []LimitTarget{l.bucket(), few, more}})
		i := quantity.Units(n + 1)
		equal(t, "admitted", d.Answers[0].Admitted, n < 5)
		equal(t, "used", d.Buckets[0].Used, min(i, 5))
		equal(t, "used of the few", d.Buckets[1].Used, min(i, 3))
		equal(t, "used of more", d.Buckets[2].Used, min(i, 5))
	}
}

// TestACostForEachBucket: a request of 2 of one bucket and 7 of another is charged so on both, or
// on none: 20 of the other have room for two of them.
func TestACostForEachBucket(t *testing.T) {
	l, _, _ := parties(t, fixed(100), fixed(0))
	other := LimitTarget{Target: Target{Key: "other", Terms: fixed(20)}}
	for n := range 3 {
		d := l.Decide(*l.now, Decide{Fence: l.guard(), Commit: true, PerBucket: true,
			Costs: []quantity.Units{2, 7}, Buckets: []LimitTarget{l.bucket(), other}})
		equal(t, "answers", len(d.Answers), 1)
		equal(t, "admitted", d.Answers[0].Admitted, n < 2)
		equal(t, "used", d.Buckets[0].Used, 2*min(quantity.Units(n+1), 2))
		equal(t, "used of the other", d.Buckets[1].Used, 7*min(quantity.Units(n+1), 2))
	}
}

// TestAQuestionAmongCharges: a request of 7 of one bucket asks about another, which has 3. It is denied
// once that one has none left, and nothing but the 7 is charged before. A limit that is charged always
// denies if it is only asked about.
func TestAQuestionAmongCharges(t *testing.T) {
	for _, always := range []bool{false, true} {
		l, _, _ := parties(t, fixed(100), fixed(0))
		other := LimitTarget{Target: Target{Key: "other", Terms: fixed(3)}, Always: always}
		ask := func() Decided {
			return l.Decide(*l.now, Decide{Fence: l.guard(), Commit: true, PerBucket: true,
				Costs: []quantity.Units{7, 0}, Buckets: []LimitTarget{l.bucket(), other}})
		}
		d := ask()
		equal(t, "admitted", d.Answers[0].Admitted, true)
		equal(t, "left of the other", d.Answers[0].Verdicts[1].Remaining, 3)
		l.Decide(*l.now, Decide{Fence: l.guard(), Commit: true, Costs: []quantity.Units{3}, Buckets: []LimitTarget{other}})
		d = ask()
		equal(t, "admitted when none is left", d.Answers[0].Admitted, false)
		equal(t, "used", d.Buckets[0].Used, 7)
		equal(t, "used of the other", d.Buckets[1].Used, 3)
		equal(t, "denied by the other", d.Answers[0].Verdicts[1].Retry != 0, true)
	}
}

// TestAPeekChargesNothing: without commit, a list is decided as usual, with 60 of it admitted, but
// nothing is charged.
func TestAPeekChargesNothing(t *testing.T) {
	for _, kind := range Kinds {
		terms := Terms{Kind: kind, Window: 1000, Cell: 1000, Tick: 1, Entitlement: 60}
		if kind.Bucket() {
			terms.Burst = 60
		}
		l, _, _ := parties(t, terms, terms)
		d := l.Decide(*l.now, Decide{Fence: l.guard(), Costs: []quantity.Units{40, 40, 20},
			Buckets: []LimitTarget{l.bucket()}})
		var admitted []bool
		for _, a := range d.Answers {
			admitted = append(admitted, a.Admitted)
		}
		if !slices.Equal(admitted, []bool{true, false, true}) {
			t.Errorf("%s: 40, 40 and 20 of 60: %v", kind, admitted)
		}
		equal(t, string(kind)+": free after a peek", l.state().Free, 60)
	}
}

// TestARequestIsChargedOnce: a request with a key of its own gets its first answer again and is not
// charged again: three times 40 of 60 are 40. A denial is not remembered, because the client may
// try again later.
func TestARequestIsChargedOnce(t *testing.T) {
	l, b, at := parties(t, fixed(60), fixed(40))
	once := func(key string, cost quantity.Units) Decided {
		return l.Decide(*l.now, Decide{Fence: l.guard(), Commit: true, Once: key,
			Costs: []quantity.Units{cost}, Buckets: []LimitTarget{l.bucket()}})
	}
	first := once("r1", 40)
	for i := range 3 {
		again := once("r1", 40)
		equal(t, "repeated", again.Repeated, true)
		equal(t, "admitted again", again.Answers[0].Admitted, true)
		equal(t, "when", again.Now, first.Now)
		equal(t, "used", l.state().Used, 40)
		at(quantity.Cell(int64(i) * 100))
	}
	equal(t, "denied", once("r2", 40).Answers[0].Admitted, false)
	// as any request of 40: 20 are left
	if d := once("r1", 40); d.Repeated || !d.TooOften || d.Answers[0].Admitted {
		t.Errorf("a fourth time again: %+v", d)
	}
	l.hears(b, 0, Credit{Announcement: Announcement{Lent: 20}})
	d := once("r2", 40)
	equal(t, "admitted when there is room", d.Answers[0].Admitted && !d.Repeated, true)
	equal(t, "used", l.state().Used, 80)
}

// TestARequestSentAgainTooOften: one id is answered a few times and is then charged as if it were
// none. So a client that sends one id with all its requests gets the limit and those few answers:
// 60 and 3 of 100.
func TestARequestSentAgainTooOften(t *testing.T) {
	l, _, _ := parties(t, fixed(60), fixed(40))
	c := Decide{Fence: l.guard(), Commit: true, Once: "r",
		Costs: []quantity.Units{1}, Buckets: []LimitTarget{l.bucket()}}
	var repeated, charged, tooOften int64
	for range 100 {
		d := l.Decide(*l.now, c)
		if d.Repeated && d.TooOften {
			t.Fatalf("both at once: %+v", d)
		}
		switch {
		case d.Repeated:
			repeated++
		case d.Answers[0].Admitted:
			charged++
		}
		if d.TooOften {
			tooOften++
		}
	}
	equal(t, "repeated", repeated, Repeats)
	equal(t, "charged", charged, 60)
	equal(t, "too often", tooOften, 100-1-Repeats)
	equal(t, "used", l.state().Used, 60)
}

// TestPeeksCountAsNoRepeat: a call without commit does not use up a repeat.
func TestPeeksCountAsNoRepeat(t *testing.T) {
	l, _, _ := parties(t, fixed(60), fixed(40))
	c := Decide{Fence: l.guard(), Commit: true, Once: "r", Costs: []quantity.Units{1},
		Buckets: []LimitTarget{l.bucket()}}
	l.Decide(*l.now, c)
	for range 5 {
		peek := c
		peek.Commit = false
		equal(t, "a peek is repeated", l.Decide(*l.now, peek).Repeated, true)
	}
	for range Repeats {
		equal(t, "a repeat", l.Decide(*l.now, c).Repeated, true)
	}
	equal(t, "one more", l.Decide(*l.now, c).TooOften, true)
}
