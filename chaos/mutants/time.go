package mutants

var clock = []Mutant{
	{
		Name: "time-goes-back", Hole: "step back reopening a cell",
		Rule:   "a store's time is a high-water mark",
		Edits:  []Edit{{"algorithms/twin.go", `w.mark = max(w.mark, t)`, `w.mark = t`}},
		Breaks: "3: a label above L; 4: cells go back", Under: "a store's clock steps back over a cell's end",
		Within: 500,
	},
	{
		Name: "loss-forgets-time", Hole: "step back reopening a cell",
		Rule:   "a store that lost its data begins no earlier than the latest time it is known to have shown",
		Edits:  []Edit{{"algorithms/twin.go", `latest = max(latest, c.Seen)`, `latest = max(latest, 0)`}},
		Breaks: "4: cells go back; 3", Under: "a store that lost its data, on a server whose clock is behind",
		Test: Test{"./algorithms", "TestALossIsNotDatedBeforeWhatWasSeen"},
	},
	{
		Name: "expires-at-once", Hole: "step forward expiring the ledger, then back",
		Rule: "a bucket outlives its last useful moment by the largest clock step that is believed",
		Edits: []Edit{
			{"algorithms/ledger.lua", `int(floor_div(left, 1000) + 1 + 3600000)`, `int(floor_div(left, 1000) + 1)`},
			{"algorithms/twin.go", `if b.expires+MaxClockStep < w.mark {`, `if b.expires < w.mark {`},
		},
		Breaks: "3: a label above L", Under: "a store's clock steps forward by less than an hour, with no call meanwhile, and back",
		Flags:  []string{"--lua-every", "1", "--limits", "1", "--algorithm", "fixed_window", "--faults", "clock-step"},
		Within: 50,
	},
	{
		Name: "believes-a-far-future", Hole: "mark poisoned by a far future",
		Rule: "a script refuses a clock further from the node's than the largest step that is believed",
		Edits: []Edit{{"algorithms/twin.go",
			`case t-g.Clock > MaxClockStep || g.Clock-t > MaxClockStep:`,
			`case t < 0:`}},
		Breaks: "9: no cell ends any more once the clock is set right", Under: "a store's clock is years ahead for a moment",
		Within: 300,
	},
	{
		Name: "counter-without-clock-guard", Hole: "clocks apart for the sliding kinds",
		Rule: "a sliding counter keeps its deductions for the clock guard longer",
		Edits: []Edit{{"algorithms/sliding_window_counter.go",
			`since := floorDiv((k-1-lent)*c.Cell+e*c.Tick-c.Guard, c.Tick)`,
			`since := floorDiv((k-1-lent)*c.Cell+e*c.Tick, c.Tick)`}},
		Breaks: "3: sum of estimates above L in real time", Under: "regions' clocks apart by less than the guard",
		Test: Test{"./algorithms", "TestCounterShadowOutlivesTheGuard"},
	},
	{
		Name: "log-without-clock-guard", Hole: "clocks apart for the sliding kinds",
		Rule: "a sliding log keeps its deductions for the clock guard longer",
		Edits: []Edit{{"algorithms/terms.go",
			`return (cell+1)*t.Cell + t.Window + t.Guard`,
			`return (cell+1)*t.Cell + t.Window`}},
		Breaks: "3: a real interval W above L", Under: "regions' clocks apart by less than the guard",
		Test: Test{"./algorithms", "TestLogLoanOutlivesTheGuard"},
	},
}
