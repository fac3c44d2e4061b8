//go:build !race

package algorithms

import "testing"

// TestWhatIsGivenUpIsHadNoEarlier: the lender, whose clock is ahead, gives 30 up at 900 of its
// cell, when the borrower's clock shows 100. A rate is then for the last tenth of the cell, but the
// borrower would have it for nine tenths; and use that had faded at 900 still weighs at 100. So the
// borrower has the rights only from 900 of its own cell on. It has at once what was promised before
// the cell began. In a fixed window nothing fades, so the clocks do not matter.
func TestWhatIsGivenUpIsHadNoEarlier(t *testing.T) {
	for kind, early := range map[Kind]Status{FixedWindow: StatusOK,
		SlidingWindowCounter: StatusEarly, SlidingWindowLog: StatusEarly,
		TokenBucket: StatusEarly, LeakyBucket: StatusEarly} {
		terms := tokened(50, 50)
		if !kind.Bucket() {
			terms.Burst = 0
		}
		terms.Kind = kind
		l, b, at := parties(t, terms, terms)
		start := *l.now
		at(100)
		equal(t, string(kind)+": too early",
			b.hears(l, 0, Credit{Announcement: Announcement{Lent: 30, At: start + 900}}).Status, early)
		equal(t, string(kind)+": and of the next cell",
			b.hears(l, 1, Credit{Announcement: Announcement{Lent: 30, At: start + 1100}}).Status, early)
		equal(t, string(kind)+": promised",
			b.hears(l, 1, Credit{Announcement: Announcement{Lent: 30, At: start + 1000}}).Status, StatusOK)
		at(900)
		equal(t, string(kind)+": in time", b.hears(l, 0, Credit{Announcement: Announcement{Lent: 30, At: start + 900}}).Status,
			StatusOK)
	}
}

// TestWhatFadedAheadStillWeighsBehind: the lender's 50 of 50, admitted at 400, have half faded by
// its clock at 1500, and it lends the half that has. The borrower's clock shows 1100, where 45 of
// the 50 weigh. With 25 lent it would admit 75 beside them, of 100.
func TestWhatFadedAheadStillWeighsBehind(t *testing.T) {
	l, b, at := parties(t, sliding(50), sliding(50))
	start := *l.now
	at(400)
	l.admits(50)
	at(1500)
	lent := l.lends(b, 1, 50)
	equal(t, "lent", lent, 25)

	_, behind, at := parties(t, sliding(50), sliding(50))
	at(1100)
	c := Credit{Announcement: Announcement{Lent: lent, At: start + 1500}}
	equal(t, "behind", behind.hears(l, 1, c).Status, StatusEarly)
	behind.has(50, 50)
	at(1500)
	equal(t, "in time", behind.hears(l, 1, c).Status, StatusOK)
	behind.has(75, 75)
}
