package mutants

var clock = []Mutant{
	{
		Name: "time-goes-back", Hole: "step back reopening a cell",
		Rule: "a store's time is a high-water mark",
		Edits: []Edit{{"algorithms/twin.go", `		w.mark++
	}`, `		w.mark = t
	}`}},
		Breaks: "ceiling: a label above L; order: cells go back", Under: "a store's clock steps back over a cell's end",
		Says:   "time: ",
		Within: 500,
	},
	{
		Name: "loss-forgets-time", Hole: "step back reopening a cell",
		Rule:   "a store that lost its data begins no earlier than the latest time it is known to have shown",
		Edits:  []Edit{{"algorithms/twin.go", `latest = max(latest, c.Seen)`, `latest = max(latest, 0)`}},
		Breaks: "order: cells go back; ceiling", Under: "a store that lost its data, on a server whose clock is behind",
		Says: "admitted, although what was lost weighs until",
		Test: Test{"./algorithms", "TestALossIsNotDatedBeforeWhatWasSeen"},
	},
	{
		Name: "opening-forgets-the-mark", Hole: "step back reopening a cell",
		Rule: "a store that is opened again begins no earlier than any time that it has shown",
		Edits: []Edit{
			{"algorithms/open.lua", `* 1000000 + tonumber(t[2]), tonumber(found[9] or 0))`, `* 1000000 + tonumber(t[2]), 0)`},
			{"algorithms/twin.go", `latest := max(t, w.mark)`, `latest := max(t, 0)`},
		},
		Breaks: "order: cells go back; ceiling", Under: "a store's clock steps back, and a generation is begun",
		Says: "open ",
		Test: Test{"./algorithms", "TestTheMarkOutlivesAnOpening"},
	},
	{
		Name: "opening-by-lua-forgets-the-mark", Hole: "step back reopening a cell",
		Rule:   "the same in the script alone",
		Edits:  []Edit{{"algorithms/open.lua", `* 1000000 + tonumber(t[2]), tonumber(found[9] or 0))`, `* 1000000 + tonumber(t[2]), 0)`}},
		Breaks: "order: cells go back; ceiling", Under: "a store's clock steps back, and a generation is begun",
		Says: "open ",
		Test: Test{"./algorithms", "TestTheMarkOutlivesAnOpening"},
	},
	{
		Name: "refused-node-is-told-no-time", Hole: "step back reopening a cell",
		Rule: "a node whose clock is not believed hears what time the store has shown to others",
		Edits: []Edit{
			{"algorithms/beat.lua", `return {status, mark}`, `return {status, 0}`},
			{"algorithms/twin.go", `		head.Now = w.mark
	}
	if head.Status`, `		head.Now = 0
	}
	if head.Status`},
		},
		Breaks: "order: time falls; ceiling: a label above L", Under: "a node's clock days off and the store's ahead, then a loss",
		Says: "time: ",
		Test: Test{"./chaos/sim", "TestPlansThatOnceOverspent"},
	},
	{
		Name: "mates-are-not-asked-for-the-time", Hole: "step back reopening a cell",
		Rule: "a store that lost its data begins no earlier than any node of the region that answers has heard",
		Edits: []Edit{{"region/store/open.go", `max(s.Latest(), all.lastSeen(), shown)`,
			`max(s.Latest(), all.lastSeen())`}},
		Breaks: "order: time falls; ceiling: a label above L", Under: "a node dead while the store's clock is ahead, then a loss",
		Says: "time: ",
		Test: Test{"./chaos/sim", "TestPlansThatOnceOverspent"},
	},
	{
		Name: "what-a-refused-node-is-told-is-not-noted", Hole: "step back reopening a cell",
		Rule: "a store notes what time it told a node that it refused",
		Edits: []Edit{{"algorithms/beat.lua", `  redis.call('HSET', KEYS[1], node, int(mark))
`, ``}},
		Breaks: "liveness: a store that lost nothing counts as lost", Under: "a node's clock days off, and right again",
		Says: "want clock step",
		Test: Test{"./region/store", "TestARefusedNodeHearsTheTime"},
	},
	{
		Name: "ends-by-the-clock", Hole: "step forward expiring the ledger, then back",
		Rule: "a bucket ends at a store's time, which its mark may hold ahead of the clock, not after one",
		Edits: []Edit{{"algorithms/bucket.lua",
			`redis.call('PEXPIREAT', h.key, ending(ends))`,
			`redis.call('PEXPIRE', h.key, int(floor_div(ends - h.now, 1000) + 1 + SLACK))`}},
		Breaks: "ceiling: a label above L", Under: "a store's clock is ahead while it decides, and right again",
		Says: "the bucket is there: false",
		Test: Test{"./region/store", "TestKeysEndByTheMark"},
	},
	{
		Name: "believes-a-far-future", Hole: "mark poisoned by a far future",
		Rule: "a script refuses a clock further from the node's than the largest step that is believed",
		Edits: []Edit{{"algorithms/twin.go",
			`case t.Sub(g.Clock) > MaxClockStep || g.Clock.Sub(t) > MaxClockStep:`,
			`case t < 0:`}},
		Breaks: "liveness: no cell ends any more once the clock is set right", Under: "a store's clock is years ahead for a moment",
		Says:   "answers: ",
		Within: 300,
	},
	{
		Name: "counter-without-clock-margin", Hole: "clocks apart for the sliding kinds",
		Rule: "a sliding counter keeps its deductions for the clock margin longer",
		Edits: []Edit{{"algorithms/sliding_window_counter.go",
			`since := floorDiv(int64((k-1-lent).OpensAt(c.Cell))+e*c.Tick-c.ClockMargin, c.Tick)`,
			`since := floorDiv(int64((k-1-lent).OpensAt(c.Cell))+e*c.Tick, c.Tick)`}},
		Breaks: "ceiling: sum of estimates above L in real time", Under: "regions' clocks apart by less than the clock margin",
		Says: "lender, at",
		Test: Test{"./algorithms", "TestCounterShadowOutlivesTheGuard"},
	},
	{
		Name: "log-without-clock-margin", Hole: "clocks apart for the sliding kinds",
		Rule: "a sliding log keeps its deductions for the clock margin longer",
		Edits: []Edit{{"algorithms/terms.go",
			`return (cell + 1).OpensAt(t.Cell).Add(t.Window).Add(t.ClockMargin)`,
			`return (cell + 1).OpensAt(t.Cell).Add(t.Window)`}},
		Breaks: "ceiling: a real interval W above L", Under: "regions' clocks apart by less than the clock margin",
		Says: "lender, at",
		Test: Test{"./algorithms", "TestLogLoanOutlivesTheGuard"},
	},
	{
		Name: "rate-had-early", Hole: "clocks apart for credits",
		Rule: "a rate is credited no earlier in its cell than it was given up",
		Edits: []Edit{{"algorithms/twin_rights.go",
			`if h.Kind != FixedWindow && c.At > c.Cell.OpensAt(h.Cell) && now < c.At {`,
			`if h.Kind.Sliding() && c.At > c.Cell.OpensAt(h.Cell) && now < c.At {`}},
		Breaks: "ceiling: above L W + B", Under: "clocks nearly a cell apart",
		Says: "ceiling: ",
		Test: Test{"./chaos/sim", "TestPlansThatOnceBroke"},
	},
	{
		Name: "weighs-here-faded-there", Hole: "clocks apart for credits",
		Rule: "what faded by the lender's clock is credited when it has by the borrower's",
		Edits: []Edit{{"algorithms/twin_rights.go",
			`if h.Kind != FixedWindow && c.At > c.Cell.OpensAt(h.Cell) && now < c.At {`,
			`if h.Kind.Bucket() && c.At > c.Cell.OpensAt(h.Cell) && now < c.At {`}},
		Breaks: "ceiling: a label above L", Under: "clocks apart by more than a message takes",
		Says: "ceiling: ",
		Test: Test{"./chaos/sim", "TestPlansThatOnceBroke"},
	},
}
