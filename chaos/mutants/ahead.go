package mutants

// wasAhead is the hole of the mutants here.
const wasAhead = "a store's time that is taken back"

// ahead are the rules by which an operator has a store's time go back.
var ahead = []Mutant{
	{
		Name: "forgets-while-a-mate-knows", Hole: wasAhead,
		Rule: "the store's time goes back only where no node of the region that answers knows it",
		Edits: []Edit{{"region/forget.go", `if n.ahead(a.Shown) > clockAhead {`, `if n.ahead(a.Shown) > 1<<62 {`},
			{"region/forget.go", `n.ahead(told.Shown) <= clockAhead {`, `n.ahead(told.Shown) <= 1<<62 {`}},
		Breaks: "ceiling: a window that comes twice", Under: "forget_store_time beside a node that runs",
		Says: "us/n1 starts",
		Test: Test{"./region", "TestAMateThatDoesNotForget"},
	},
	{
		Name: "forgets-with-data-of-before", Hole: wasAhead,
		Rule: "the store's time goes back only where the store is empty",
		Edits: []Edit{{"region/forget.go", `case s.Generation != 0 && s.Generation <= n.config.Journal.Generation()`,
			`case s.Generation != 0 && s.Generation < n.config.Journal.Generation()`}},
		Breaks: "ceiling: what was used since a copy", Under: "forget_store_time with a copy of the Redis",
		Says: "us/n1 starts",
		Test: Test{"./region", "TestForgettingNeedsAnEmptyStore"},
	},
	{
		Name: "forgets-by-a-clock-that-is-behind", Hole: wasAhead,
		Rule: "the store's time goes back to a clock that others confirm",
		Edits: []Edit{{"region/forget.go", `if max(apart, -apart) > clockAhead && !n.config.TrustClock {`,
			`if -apart > clockAhead && !n.config.TrustClock {`}},
		Breaks: "ceiling: windows that were right come twice", Under: "forget_store_time with a clock that is behind",
		Says: "us/n1 starts",
		Test: Test{"./region", "TestForgettingIsRefused"},
	},
	{
		Name: "keeps-use-of-cells-to-come", Hole: wasAhead,
		Rule:   "use of cells to come does not hide use of those that have begun",
		Edits:  []Edit{{"region/tenure/forget.go", `return c, a == nil || a.Bucket.Cells().Opens(c.Cell) <= to`, `return c, a != nil`}},
		Breaks: "ceiling: use of a long window", Under: "forget_store_time",
		Says: "used of the window|to be restored",
		Test: Test{"./region", "TestUseBeforeTheTimeWasTakenBack"},
	},
	{
		Name: "prunes-while-clocks-are-ahead", Hole: wasAhead,
		Rule: "a journal forgets nothing because clocks were ahead for a moment",
		Edits: []Edit{{"region/prune.go", `quantity.StoreTime(n.started.Add(n.elapsed()+clockAhead).UnixMicro()))`,
			`quantity.StoreTime(n.config.Now().Add(clockAhead).UnixMicro()))`}},
		Breaks: "ceiling: use of a long window", Under: "clocks of one machine a day ahead for ten seconds, then forget_store_time",
		Says: "used of the window",
		Test: Test{"./region", "TestUseBeforeTheTimeWasTakenBack"},
	},
}
