package mutants

var copies = []Mutant{
	{
		Name: "older-copy-decides", Hole: "copy of a store that runs on",
		Rule: "a script refuses a caller that knows a later time than it was answered with",
		Edits: []Edit{
			{"algorithms/token.lua", ` or answered < seen then`, ` then`},
			{"algorithms/twin.go", `max(w.answered[g.Node], w.begun) < g.Seen:`, `false:`},
		},
		Breaks: "ceiling: a label above L; order: time falls", Under: "a virtual machine with the store put back",
		Says: "ceiling: ",
		Test: Test{"./chaos/sim", "TestPlansThatOnceOverspent"},
	},
	{
		Name: "older-copy-decides-by-lua", Hole: "copy of a store that runs on",
		Rule: "the same in the script alone",
		Edits: []Edit{
			{"algorithms/token.lua", ` or answered < seen then`, ` then`},
		},
		Breaks: "ceiling: a label above L; order: time falls", Under: "a virtual machine with the store put back",
		Says: "failed after",
		Test: Test{"./algorithms", "TestLuaEqualsTwin"},
	},
	{
		Name: "copy-counts-once-it-was-asked", Hole: "copy of a store that runs on",
		Rule: "each node compares what itself was answered with, whoever has asked a copy since",
		Edits: []Edit{
			{"algorithms/twin.go", `max(w.answered[g.Node], w.begun) < g.Seen:`, `max(w.mark, w.answered[g.Node], w.begun) < g.Seen:`},
		},
		Breaks: "ceiling: a label above L", Under: "a copy put back as another node starts or wakes",
		Says: "ceiling: ",
		Test: Test{"./chaos/sim", "TestPlansThatOnceOverspent"},
	},
	{
		Name: "held-time-stands-still", Hole: "copy of a store that runs on",
		Rule: "each answer is later than the one before, also while the clock is behind the mark",
		Edits: []Edit{
			{"algorithms/token.lua", `lag = mark - now + 1 end`, `lag = mark - now end`},
			{"algorithms/twin.go", `		w.mark++
	}`, `	}`},
		},
		Breaks: "ceiling: a label above L", Under: "a store whose clock was ahead, and a copy of it put back",
		Says: "ceiling: ",
		Test: Test{"./chaos/sim", "TestPlansThatOnceOverspent"},
	},
	{
		Name: "held-time-stands-still-in-the-script", Hole: "copy of a store that runs on",
		Rule: "the same in the script alone",
		Edits: []Edit{
			{"algorithms/token.lua", `lag = mark - now + 1 end`, `lag = mark - now end`},
		},
		Breaks: "ceiling: a label above L", Under: "a store whose clock was ahead, and a copy of it put back",
		Says: "failed after",
		Test: Test{"./algorithms", "TestLuaEqualsTwin"},
	},
	{
		Name: "rows-without-their-time", Hole: "copy of a store that runs on",
		Rule: "the commit of a row notes how far the store's time had come",
		Edits: []Edit{
			{"region/rights/effects.go", `Record(ctx, rows, e.config.Store.Seen()...)`, `Record(ctx, rows)`},
		},
		Breaks: "ceiling: a label above L", Under: "a busy store, its node's end, and a copy of it put back",
		Says: "ceiling:",
		Test: Test{"./chaos/sim", "TestPlansThatOnceOverspent"},
	},
	{
		Name: "times-are-noted-late", Hole: "copy of a store that runs on",
		Rule: "the journal notes each second which time the store has shown",
		Edits: []Edit{
			{"region/tenure/storetime.go", `} else if len(seen) == 0 {`, `} else {`},
		},
		Breaks: "ceiling: a label above L", Under: "a node's end, and a copy of the store put back meanwhile",
		Says: "ceiling:",
		Test: Test{"./chaos/sim", "TestPlansThatOnceOverspent"},
	},
	{
		Name: "older-copy-stands", Hole: "copy of a store that runs on",
		Rule: "a store that has not answered a node with a time that this node knows has lost what came since",
		Edits: []Edit{
			{"region/store/looks.go", `l.Answered < l.seen ||`, `false ||`},
		},
		Breaks: "ceiling: a label above L; liveness: nothing is decided any more", Under: "a virtual machine with the store put back",
		Says: "ceiling: ",
		Test: Test{"./chaos/sim", "TestPlansThatOnceOverspent"},
	},
	{
		Name: "forgets-by-its-own-clock", Hole: "clock of a single node",
		Rule: "what a node remembers is forgotten by the store's time",
		Edits: []Edit{
			{"region/rights/engine.go", `newLastSeen(c.Region, c.Memory, c.Store.Latest, c.Store.Surely),`, `newLastSeen(c.Region, c.Memory, c.Store.Latest, func() quantity.StoreTime { return quantity.StoreTime(c.Now().UnixMicro()) }),`},
		},
		Breaks: "ceiling: a label above L", Under: "a node's clock days ahead for ten seconds, then FLUSHALL or DEL",
		Says: "ceiling: ",
		Test: Test{"./chaos/sim", "TestPlansThatOnceOverspent"},
	},
	{
		Name: "prunes-by-its-own-clock", Hole: "clock of a single node",
		Rule: "a journal's rows are forgotten by the store's time",
		Edits: []Edit{
			{"region/prune.go", `before := min(n.config.Store.Surely(), quantity.StoreTime(n.config.Now().UnixMicro()),
		quantity.StoreTime(n.started.Add(n.elapsed()+clockAhead).UnixMicro()))
`, `before := quantity.StoreTime(n.config.Now().UnixMicro())
`},
		},
		Breaks: "conservation: sum of S above L; ceiling", Under: "a node's clock days ahead for ten seconds, then FLUSHALL",
		Says: "conservation: ",
		Test: Test{"./chaos/sim", "TestPlansThatOnceOverspent"},
	},
	{
		Name: "journal-is-whole-by-its-own-clock", Hole: "clock of a single node",
		Rule: "the time since which a new journal holds all is the store's",
		Edits: []Edit{
			{"region/tenure/journal.go", `err = journal.SetWholeSince(opened.Now)`, `err = journal.SetWholeSince(opened.Now.Add(t.config.Now().UnixMicro()-int64(opened.Now)))`},
		},
		Breaks: "conservation: sum of S above L", Under: "a journal lost, its node's clock behind; then FLUSHALL with the peer cut off",
		Says: "conservation: ",
		Test: Test{"./chaos/sim", "TestPlansThatOnceOverspent"},
	},
	{
		Name: "journal-forgets-the-stores-time", Hole: "clock of a single node",
		Rule: "a store that is opened anew by who just started begins no earlier than its journal says",
		Edits: []Edit{
			{"region/store/open.go", `seen = max(seen, o.Latest)`, `seen = max(seen, 0)`},
		},
		Breaks: "ceiling: a label above L; order: time falls", Under: "the store's clock ahead; it and its node lost together",
		Says: "s earlier once more",
		Test: Test{"./region/tenure", "TestTheStoresTimeOutlivesItAndItsNode"},
	},
	{
		Name: "stores-time-is-noted-late", Hole: "clock of a single node",
		Rule: "no later time is given out than the journal allows for",
		Edits: []Edit{
			{"region/tenure/storetime.go", `SetStoreTime(latest, seen...)`, `SetStoreTime(latest-timeAhead, seen...)`},
		},
		Breaks: "ceiling: a label above L; order: time falls", Under: "the store's clock ahead; it and its node lost together",
		Says: "s earlier once more",
		Test: Test{"./region/tenure", "TestTheStoresTimeOutlivesItAndItsNode"},
	},
}
