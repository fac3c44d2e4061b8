//go:build !race

package assign

import "github.com/quotad/quotad/quantity"

// told is a message with an assignment, as the judge writes it down.
type told struct {
	rate  int64
	burst quantity.Units
	ttl   int64
	from  int64
	// ends is when it ends if it came at once. until is when it ends if it came as late as may be,
	// as long as it has not come, and then when it does end.
	ends, until int64
}

// tell writes down what a node sends. What may start a full token bucket has to be paid for:
// another assignment, and the same once more if the Envoy may have none when it comes.
func (w *world) tell(n *worldNode, s Send) *told {
	if n.told == nil {
		n.told = map[Stream][]*told{}
	}
	one := &told{s.Rate, s.Burst, s.TTL, w.now, w.now + s.TTL*second, w.now + s.TTL*second + Late}
	all := n.told[s.Stream]
	if last := len(all) - 1; last < 0 || all[last].rate != s.Rate || all[last].burst != s.Burst ||
		w.now+Late >= all[last].ends {
		w.issued += s.Burst
	}
	n.told[s.Stream] = append(all, one)
	return one
}

// took writes down that an Envoy has taken a message: it has nothing of before any more.
func (w *world) took(n *worldNode, s Send, of *told) {
	for _, one := range n.told[s.Stream] {
		if one == of {
			one.until = w.now + s.TTL*second
			return
		}
		one.until = min(one.until, w.now)
	}
}

// mayHave returns the rates that Envoys may have at this moment together, of what nodes of a name
// told them, whatever process did.
func (w *world) mayHave(name string) (sum int64) {
	for _, n := range w.lives {
		if n.name != name {
			continue
		}
		for _, all := range n.told {
			most := int64(0)
			for _, one := range all {
				if one.from <= w.now && w.now < one.until {
					most = max(most, one.rate)
				}
			}
			sum += most
		}
	}
	return sum
}

// check breaks the test if Envoys may have more than their nodes hold, or were told of tokens that
// nobody paid for.
func (w *world) check() {
	c := w.cell()
	if w.plans.delay > 0 { // for which there is a bound
		return
	}
	if w.plans.counted {
		w.checkUnits(c)
		return
	}
	for _, n := range w.nodes {
		held := quantity.Units(0)
		if row := w.rows[n.name][c]; row != nil {
			held = row[0] - row[1]
		}
		if sum := w.mayHave(n.name); quantity.Units(sum) > held {
			w.t.Fatalf("at %d: Envoys of %s may have %d a second, and it holds %d of cell %d",
				w.now, n.name, sum, held, c)
		}
	}
	if w.issued > w.paid {
		w.t.Fatalf("at %d: %d tokens assigned, %d paid for", w.now, w.issued, w.paid)
	}
}

// checkUnits breaks the test if Envoys have admitted, or may admit at once, more units of a window
// than their nodes hold of it.
func (w *world) checkUnits(c quantity.Cell) {
	for _, n := range w.nodes {
		held := quantity.Units(0)
		if row := w.rows[n.name][c]; row != nil {
			held = row[0] - row[1]
		}
		tokens := 0.0
		for _, e := range w.envoys {
			if e.by == n.name && w.now < e.expires {
				tokens += e.tokens
			}
		}
		if spent := w.spent[n.name][c]; spent+quantity.Units(tokens) > held {
			w.t.Fatalf("at %d: Envoys of %s admitted %d and have %.0f tokens, and it holds %d of cell %d",
				w.now, n.name, spent, tokens, held, c)
		}
	}
	if free := w.free(c); free < 0 {
		w.t.Fatalf("at %d: %d units too many are held or used of cell %d", w.now, -free, c)
	}
}
