package algorithms

import "testing"

// TestALossIsNotDatedBeforeWhatWasSeen: a store that lost its data shows an earlier time than before, its clock having
// been set back or being another machine's. The cells it served before stay closed.
func TestALossIsNotDatedBeforeWhatWasSeen(t *testing.T) {
	const window, cell = 1000, 1_800_000_000_010
	terms := Terms{Kind: FixedWindow, Window: window, Entitlement: 400}
	decide := func(w *Twin, at, cost int64) Decided {
		return w.Decide(at, Decide{Guard: Guard{Generation: w.Generation, Epoch: "1-e", Clock: at}, Commit: true, Costs: []int64{cost},
			Buckets: []Target{{Key: "k", Terms: terms}}})
	}
	var w Twin
	w.Open(cell*window, Open{Generation: 1, Epoch: "1-e"})
	seen := decide(&w, cell*window+500, 400)
	if !seen.Answers[0].Admitted {
		t.Fatalf("the first 400: %+v", seen)
	}
	w.Flush()
	back := seen.Now - 5*window
	w.Open(back, Open{Generation: 2, Epoch: "1-e", Lost: true, Seen: seen.Now})
	for at := back; at < (cell+2)*window; at += window / 2 {
		if d := decide(&w, at, 1); d.Answers[0].Admitted {
			t.Fatalf("at %d: admitted in cell %d, after the loss: %+v", at-cell*window, d.Buckets[0].Cell-cell, d)
		}
	}
	if d := decide(&w, (cell+2)*window, 400); !d.Answers[0].Admitted {
		t.Errorf("the first cell that the loss cannot have touched: %+v", d)
	}
}
