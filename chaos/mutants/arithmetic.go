package mutants

var arithmetic = []Mutant{
	{
		Name: "token-bucket-settles-late", Hole: "settle before a share change",
		Rule: "a token bucket is refilled at the old share before the share changes",
		Edits: []Edit{{"algorithms/token_bucket.go",
			`t.level += tokens * quantity.Units(t.ticks)
	t.dirty = true
}

func (t *tokens) refund`,
			`t.level += tokens * quantity.Units(t.ticks)
	t.dirty = t.dirty || tokens != 0
}

func (t *tokens) refund`}},
		Breaks: "ceiling: pooled bucket below zero", Under: "none; rights move",
		Says:   "ceiling: ",
		Within: 500,
	},
	{
		Name: "queue-settles-late", Hole: "settle before a share change",
		Rule:   "a queue's work is done at the old share before the share changes",
		Edits:  []Edit{{"algorithms/leaky_bucket.go", `func (q *queue) settle(quantity.Units) { q.dirty = true }`, `func (q *queue) settle(quantity.Units) {}`}},
		Breaks: "ceiling: pooled queue overfull", Under: "none; rights move",
		Says: "lender, at",
		Test: Test{"./algorithms", "TestPromisedTurnsAreNotLent"},
	},
	{
		Name: "settles-in-one-stretch", Hole: "settle across a cell's end",
		Rule:   "a bucket is settled cell by cell, each with that cell's own share",
		Edits:  []Edit{{"algorithms/rate.go", `if cell > r.last {`, `if cell >= 0 {`}},
		Breaks: "ceiling: pooled bucket below zero", Under: "none; rights borrowed in one cell, then a pause",
		Says: "borrower, at",
		Test: Test{"./algorithms", "TestTokensAreSettledAcrossACellsEnd"},
	},
	{
		Name: "a-raised-rate-counts-for-the-past", Hole: documentsDiffer,
		Rule: "what passed before a bucket is charged under a higher rate counts at the lower one",
		Edits: []Edit{{"algorithms/rate.go",
			`r.Entitlement = min(now, r.bucket.entitled)`,
			`r.Entitlement = now`}},
		Breaks: "ceiling: a bucket refills faster than any document said", Under: "a limit that is raised",
		Says: "free when the rate is raised",
		Test: Test{"./algorithms", "TestARaisedRateDoesNotCountForThePast"},
	},
	{
		Name: "credit-catches-up", Hole: "bucket rights as a rate without catching up",
		Rule: "a borrowed rate counts from its credit on, not from the cell's start",
		Edits: []Edit{{"algorithms/twin_rights.go",
			`l = h.change(l, c.Cell, c.Peer, heard, heard.BurstBorrowed-row.BurstBorrowed)`,
			`tokens := heard.BurstBorrowed - row.BurstBorrowed
		if h.Kind.Bucket() && heard.Borrowed > row.Borrowed && c.Cell == h.cell {
			tokens += (heard.Borrowed - row.Borrowed) * quantity.Units(h.now.Sub(h.cell.OpensAt(h.Cell))) / quantity.Units(h.Window)
		}
		l = h.change(l, c.Cell, c.Peer, heard, tokens)`}},
		Breaks: "ceiling: pooled bucket below zero", Under: "none; credits late in a cell",
		Says:   "ceiling: ",
		Flags:  []string{"--algorithm", "token_bucket", "--window", "1s", "--limits", "1"},
		Within: 500,
	},
	{
		Name: "burst-outlives-its-cell", Hole: "burst rights clipped at the cell's end",
		Rule: "at a cell's end the level is clipped to the capacity without borrowed burst",
		Edits: []Edit{
			{"algorithms/token_bucket.go",
				`if t.level += share * quantity.Units(ticks); t.level > full {
		t.level, t.mark = full, end
	}`,
				`t.level = max(t.level, min(t.level+share*quantity.Units(ticks), full))`},
			{"algorithms/token_bucket.go",
				`t.clip(full)
	if t.level`,
				`if t.level`},
		},
		Breaks: "local: tokens above capacity; ceiling: pooled bucket below zero", Under: "none; burst borrowed and not spent",
		Says:   "conservation: ",
		Within: 500,
	},
	{
		Name: "lends-promised-turns", Hole: "queue turns across cells",
		Rule:   "a cell's rate may be lent only from the last promised turn on",
		Edits:  []Edit{{"algorithms/leaky_bucket.go", `if q.next > max(q.tick, int64(cell)*q.cells) {`, `if q.next < 0 {`}},
		Breaks: "ceiling: turns closer than the pooled queue's", Under: "none; a lender with a backlog is asked",
		Says: "lent while turns are promised",
		Test: Test{"./algorithms", "TestPromisedTurnsAreNotLent"},
	},
	{
		Name: "turns-at-the-present-share", Hole: "queue turns across cells",
		Rule: "turns are computed cell by cell, beyond the last row at the entitlement",
		Edits: []Edit{{"algorithms/rate.go",
			`case share > 0 && (to < 0 || work <= share*quantity.Units(to-from)):`,
			`case share > 0:`}},
		Breaks: "ceiling: turns closer than the pooled queue's", Under: "none; a backlog longer than a cell with a borrowed rate",
		Says: "borrower, at",
		Test: Test{"./algorithms", "TestTurnsAreComputedCellByCell"},
	},
	{
		Name: "refills-while-full", Hole: "bucket rights as a rate without catching up",
		Rule:   "time that a full bucket lost is lost to the microsecond, not to the tick",
		Edits:  []Edit{{"algorithms/token_bucket.go", `if t.level == full {`, `if t.level == full && t.tick < 0 {`}},
		Breaks: "ceiling: pooled bucket below zero, by less than a tick", Under: "none; a bucket that is full where a tick begins, and spent within it",
		Says: "lender, at",
		Test: Test{"./algorithms", "TestRefillIsLostWhileFull"},
	},
	{
		Name: "drops-remainders", Hole: "remainders lost at denied decisions",
		Rule: "a level keeps its fraction of a token",
		Edits: []Edit{{"algorithms/token_bucket.go",
			`func (t *tokens) save() {
	if !t.dirty {
		return
	}
	t.write(t.level, t.at, t.mark)`,
			`func (t *tokens) save() {
	t.write(floorDiv(t.level, t.ticks)*quantity.Units(t.ticks), t.at, t.mark)`}},
		Breaks: "use: a slow bucket that is asked often starves", Under: "none; a rate of less than a unit between requests",
		Says:   "convergence: ",
		Within: 300,
	},
	{
		Name: "takes-any-cost", Hole: "NaN, negative, above 2^52",
		Rule: "a cost below 1 or above 2^51 is refused by the store, whatever let it through",
		Edits: []Edit{
			{"algorithms/twin.go", `return cost < 1 || cost > MaxUnits })`, `return cost == 0 })`},
			{"region/admit/decision.go", `case r.Cost < 1 || r.Cost > 1<<51:`, `case r.Cost == 0:`},
		},
		Breaks: "local: a negative cost gives units back", Under: "malformed requests",
		Says:   "answers: ",
		Within: 300,
	},
	{
		Name: "rounds-every-share-up", Hole: "rounding every share up to 1",
		Rule: "entitlements add up to the limit exactly: fractions are rounded down, and the rest given to the largest",
		Edits: []Edit{{"allocator/entitlement.go",
			`for _, i := range k.byRemainder(weights, int(rotation%uint64(n)))[:left] {
		split[i]++`,
			`for i := range split {
		split[i] += quantity.Units(min(remainder[i], 1))`}},
		Breaks: "ceiling: above L", Under: "none; weights that do not divide the limit",
		Says:   "ceiling: ",
		Within: 100,
	},
	{
		Name: "a-unit-beside-a-zero-weight", Hole: "rounding every share up to 1",
		Rule: "a region of weight 0 gets nothing",
		Edits: []Edit{{"allocator/entitlement.go", `		split[i]++
	}
	return split`, `		split[i]++
	}
	for i, w := range weights {
		if w == 0 {
			split[i] = 1
		}
	}
	return split`}},
		Breaks: "conservation: sum of S above L", Under: "none; weights of which one is 0",
		Says:  "conservation: |ceiling: ",
		Flags: []string{"--varied"}, Within: 300,
	},
	{
		Name: "small-limits-are-split", Hole: "rounding every share up to 1",
		Rule: "a limit too small to be split belongs to one region",
		Edits: []Edit{
			{"allocator/entitlement.go", `if home {`, `if home && limit < 0 {`},
			{"allocator/entitlement.go",
				`s := Split{Units: Entitlements(limit, weights, rotation)}
`,
				`s := Split{Units: Entitlements(limit, weights, rotation)}
	for i := range s.Units {
		s.Units[i] = max(s.Units[i], 1)
	}
`},
		},
		Breaks: "conservation: sum of S above L", Under: "none; a limit below the number of regions",
		Says:   "ceiling: ",
		Within: 300,
	},
	{
		Name: "denial-spends-elsewhere", Hole: "denied request spending another limit's units",
		Rule:   "check all limits of a request, then charge all or none",
		Edits:  []Edit{{"algorithms/twin.go", `if a.Admitted && a.Verdicts[i].Retry == 0 {`, `if a.Verdicts[i].Retry == 0 {`}},
		Breaks: "local: used is not what was admitted; use", Under: "none; two limits on one request, one of them tight",
		Says: "left of",
		Test: Test{"./algorithms", "TestADenialSpendsNothingElsewhere"},
	},
}
