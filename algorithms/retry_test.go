package algorithms

import (
	"testing"

	"pgregory.net/rapid"
)

// TestRetryIsHonest: alone, a retry at the moment named is admitted, and a microsecond earlier it is denied.
func TestRetryIsHonest(t *testing.T) {
	var denied, never int
	rapid.Check(t, func(t *rapid.T) {
		var w Twin
		now := rapid.Int64Range(1<<40, 1<<50).Draw(t, "now")
		w.Open(now, Open{Generation: 1, Epoch: "e", Lost: rapid.Bool().Draw(t, "lost")})
		terms := Terms{Kind: FixedWindow, Window: rapid.Int64Range(1, 1_000_000).Draw(t, "window"),
			Entitlement: rapid.Int64Range(0, 20).Draw(t, "entitlement")}
		guard := func(at int64) Guard { return Guard{Generation: 1, Epoch: "e", Clock: at} }
		decide := func(at, cost int64, commit bool) Answer {
			return w.Decide(at, Decide{Guard: guard(at), Commit: commit, Costs: []int64{cost},
				Buckets: []Target{{Key: "k", Terms: terms}}}).Answers[0]
		}
		units := rapid.Int64Range(1, 12)
		for range rapid.IntRange(0, 12).Draw(t, "acts") {
			cell := CellAt(now, terms.Window) + rapid.Int64Range(0, 1).Draw(t, "cell")
			switch rapid.IntRange(0, 3).Draw(t, "act") {
			case 0:
				decide(now, units.Draw(t, "cost"), true)
			case 1:
				w.Lend(now, Lend{Guard: guard(now), Key: "k", Terms: terms, Peer: "p", Cell: cell, Lent: units.Draw(t, "lent"), Cap: 20})
			case 2:
				w.Credit(now, Credit{Guard: guard(now), Key: "k", Terms: terms, Peer: "p", PeerGeneration: 1, Cell: cell, Lent: units.Draw(t, "borrowed"), Most: 20})
			case 3:
				now += rapid.Int64Range(0, terms.Window).Draw(t, "wait")
			}
		}
		cost := units.Draw(t, "cost")
		a := decide(now, cost, false)
		if a.Admitted {
			return
		}
		denied++
		retry := a.Verdicts[0].Retry
		if retry < 0 {
			never++
			if cost <= terms.Entitlement {
				t.Fatalf("cost %d is never admitted, although the entitlement is %d", cost, terms.Entitlement)
			}
			return
		}
		if retry > 1 && decide(now+retry-1, cost, false).Admitted {
			t.Fatalf("admitted a microsecond before the retry time of %d", retry)
		}
		if !decide(now+retry, cost, false).Admitted {
			t.Fatalf("denied at the retry time of %d", retry)
		}
	})
	if denied == 0 || never == 0 {
		t.Fatalf("%d denials, %d for ever: the test saw nothing", denied, never)
	}
}
