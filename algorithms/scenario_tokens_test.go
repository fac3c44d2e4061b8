//go:build !race

package algorithms

import (
	"testing"

	"github.com/quotad/quotad/quantity"
)

func tokened(entitlement, burst quantity.Units) Terms {
	return Terms{Kind: TokenBucket, Window: 1000, Cell: 1000, Tick: 1, Entitlement: entitlement,
		Burst: burst}
}

// TestTokenRightsAreARate: the lender's rate falls at the debit. The borrower's rises at the
// credit, and never catches up on time already gone. Both hold 50 tokens, used up at 0, and are
// refilled with 50 in 1000. 30 leave at 100 and arrive at 200. At 300 the lender has 50 x 0.1 + 20
// x 0.2 = 9, the borrower 50 x 0.2 + 80 x 0.1 = 18: together 27 of the 30 that a pool would have.
// The 3 of the time in flight are lost. A borrower that had its 80 from the cell's start on would
// have 24, and both together 33.
func TestTokenRightsAreARate(t *testing.T) {
	l, b, at := parties(t, tokened(50, 50), tokened(50, 50))
	l.admits(50)
	b.admits(50)
	at(100)
	equal(t, "lent", l.lends(b, 0, 30), 30)
	l.has(20, 5)
	at(200)
	l.has(20, 7) // 5 + 20 x 0.1
	b.has(50, 10)
	b.hears(l, 0, Credit{Announcement: Announcement{Lent: 30}})
	b.has(80, 10)
	at(300)
	l.has(20, 9)
	b.has(80, 18)
}

// TestTokensAreSettledBeforeAChangeOfShare: an empty bucket of 100 in 1000 hears at 983 of 300
// more. At 1000 it holds 100 x 0.983 + 400 x 0.017 = 105.1; one lazy refill at the new rate would
// have made 400 of them.
func TestTokensAreSettledBeforeAChangeOfShare(t *testing.T) {
	l, b, at := parties(t, tokened(300, 1000), tokened(100, 1000))
	b.admits(1000)
	l.admits(1000)
	at(983)
	b.borrows(l, 0, 300)
	at(1000)
	b.has(100, 105)
	l.has(300, 294) // 300 x 0.983 = 294.9, and nothing since: not 0 x 1
}

// TestTokensAreSettledAcrossACellsEnd: 300 in 1000, and 6000 borrowed in cell 0. Emptied at 500 and
// asked at 1500, the bucket holds 6300 x 0.5 + 300 x 0.5 = 3300; one refill at the rate of cell 0
// would have made 6300.
func TestTokensAreSettledAcrossACellsEnd(t *testing.T) {
	l, b, at := parties(t, tokened(6000, 10_000), tokened(300, 10_000))
	l.admits(10_000)
	b.borrows(l, 0, 6000)
	at(500)
	b.admits(10_000)
	at(1500)
	b.has(300, 3300)
	l.has(6000, 3000) // nothing in cell 0, all of it in cell 1
}

// TestBurstRightsMoveTokens: burst rights move capacity and the tokens in it. The lender, full with
// 10, lends 6: it then holds 4 of 4, the borrower 16 of 16. If the tokens did not move too, 20 + 6
// could be spent at once.
func TestBurstRightsMoveTokens(t *testing.T) {
	l, b, _ := parties(t, tokened(10, 10), tokened(10, 10))
	g := l.gives(b, 0, Lend{Debit: Debit{Burst: 6, CapBurst: 10}})
	equal(t, "burst lent", g.Row.BurstLent, 6)
	l.denies(5, 1100) // full with 4 until the end of the cell, and one more takes 100
	b.hears(l, 0, Credit{Announcement: Announcement{Burst: 6}})
	b.admits(16)
	b.denies(1, 100)
	l.admits(4)
	l.denies(1, 100)
}

// TestOnlyTokensThatAreThereAreLent: of 10 the lender holds 3 when it is asked for 10. It keeps 1
// and lends 2. Lending capacity whose tokens are spent would leave it 7 below zero, and 17 of 10
// spent in all.
func TestOnlyTokensThatAreThereAreLent(t *testing.T) {
	l, b, _ := parties(t, tokened(10, 10), tokened(10, 10))
	l.admits(7)
	equal(t, "burst lent", l.gives(b, 0, Lend{Debit: Debit{Burst: 10, KeptBurst: 1, CapBurst: 10}}).Row.BurstLent,
		2)
	equal(t, "free", l.state().Free, 1)
}

// TestBurstLentStaysWithinTheCapacity: sum Y out <= C, over all peers. A borrower's own 10 and 10
// borrowed are 20, of which it lends 10. Asking twice lends once.
func TestBurstLentStaysWithinTheCapacity(t *testing.T) {
	l, b, _ := parties(t, tokened(10, 10), tokened(10, 10))
	other := *b
	other.name = "third"
	l.gives(b, 0, Lend{Debit: Debit{Burst: 10, CapBurst: 10}})
	b.hears(l, 0, Credit{Announcement: Announcement{Burst: 10}})
	equal(t, "free", b.state().Free, 20)
	for range 2 {
		equal(t, "to the third", b.gives(&other, 0, Lend{Debit: Debit{Burst: 7, CapBurst: 10}}).Row.BurstLent, 7)
	}
	equal(t, "to the lender", b.gives(l, 0, Lend{Debit: Debit{Burst: 10, CapBurst: 10}}).Row.BurstLent, 3)
	equal(t, "more than it has", l.hears(b, 0, Credit{Announcement: Announcement{Burst: 11}}).Status, StatusImplausible)
}

// TestRefillCountsFromTheCellsEnd: the lender's only token is lent until 1000. From then on it is
// refilled. A call in the middle of the first tick after that loses none of the refill.
func TestRefillCountsFromTheCellsEnd(t *testing.T) {
	terms := tokened(1, 1)
	terms.Tick = 10
	l, b, at := parties(t, terms, terms)
	equal(t, "burst lent", l.gives(b, 0, Lend{Debit: Debit{Burst: 1, CapBurst: 1}}).Row.BurstLent, 1)
	at(1001)
	l.denies(1, 999)
	at(1999)
	l.denies(1, 1)
	at(2000)
	l.admits(1)
}

// TestRefillIsLostWhileFull: the bucket is full at 1000, and a token is spent in the middle of the
// tick that begins there. The next token takes a window from the next tick on, not from 1000.
func TestRefillIsLostWhileFull(t *testing.T) {
	terms := tokened(1, 1)
	terms.Tick = 10
	l, _, at := parties(t, terms, terms)
	l.admits(1)
	at(1005)
	l.admits(1)
	l.denies(1, 1005)
}

// TestBurstIsClippedAtTheCellsEnd: the borrower, with 16 unspent where its own bucket holds 10, has
// 10 in the next cell. There the lender fills up again from 4: 20 in all. Unclipped it would be 26.
func TestBurstIsClippedAtTheCellsEnd(t *testing.T) {
	l, b, at := parties(t, tokened(10, 10), tokened(10, 10))
	l.gives(b, 0, Lend{Debit: Debit{Burst: 6, CapBurst: 10}})
	b.hears(l, 0, Credit{Announcement: Announcement{Burst: 6}})
	equal(t, "free", b.state().Free, 16)
	at(1000)
	b.has(10, 10)
	l.has(10, 4)
	at(1600)
	l.has(10, 10)
	b.has(10, 10)
}

// TestLateBurstIsVoid: burst that is heard of after its cell brings nothing, nor does burst heard
// of before its cell opens. The lender lends 6 at 900 and has 10 again at 1600. With 6 at the
// borrower, there would be 26 in all.
func TestLateBurstIsVoid(t *testing.T) {
	l, b, at := parties(t, tokened(10, 10), tokened(10, 10))
	at(900)
	equal(t, "burst of the next cell", l.gives(b, 1, Lend{Debit: Debit{Burst: 6, CapBurst: 10}}).Row.BurstLent, 0)
	l.gives(b, 0, Lend{Debit: Debit{Burst: 6, CapBurst: 10}})
	b.hears(l, 1, Credit{Announcement: Announcement{Burst: 6}})
	b.has(10, 10)
	at(1000)
	b.has(10, 10)
	equal(t, "heard late", b.hears(l, 0, Credit{Announcement: Announcement{Burst: 6}}).Status, StatusFinished)
	at(1600)
	l.has(10, 10)
	b.has(10, 10)
}

// TestRemaindersSurviveDenials: 2 tokens in ten minutes, and a request every second. Whole tokens
// come at 300 s and at 600 s. Rounding the level down at each of the 299 denials between would
// never give one.
func TestRemaindersSurviveDenials(t *testing.T) {
	const second = 1_000_000
	for _, kind := range []Kind{TokenBucket, LeakyBucket} {
		slow := Terms{Kind: kind, Window: 600 * second, Cell: second, Tick: 1, Entitlement: 2,
			Burst: 2}
		l, _, at := parties(t, slow, slow)
		l.admits(2)
		for s := quantity.Cell(1); s <= 600; s++ {
			at(s * second)
			if s%300 == 0 {
				l.admits(1)
			} else {
				l.denies(1, int64((300-s%300)*second))
			}
		}
	}
}
