package mutants

var local = []Mutant{
	{
		Name: "each-node-spends-it-all", Hole: "store out of reach for some nodes only",
		Rule: "without its store a node spends its part of the entitlement, by the number of nodes configured",
		Edits: []Edit{{"allocator/bounds.go",
			`part := (entitlement - Part(entitlement, lendingPPM)) / quantity.Units(nodes)`,
			`part := (entitlement - Part(entitlement, lendingPPM)) / quantity.Units(min(nodes, 1))`}},
		Breaks: "ceiling: more above L than the printed bound of local", Under: "a store out of reach for both nodes of a region",
		Says: `LocalPart\(`,
		Test: Test{"./allocator", "TestLocalPart"},
	},
	{
		Name: "spends-what-may-be-lent", Hole: "store out of reach for some nodes only",
		Rule: "without its store a node spends nothing that may have been lent",
		Edits: []Edit{{"allocator/bounds.go",
			`part := (entitlement - Part(entitlement, lendingPPM)) / quantity.Units(nodes)`,
			`part := (entitlement - Part(entitlement, 0)) / quantity.Units(nodes)`}},
		Breaks: "ceiling: more above L than the printed bound of local", Under: "a store out of reach while its region's rights are lent",
		Says: `LocalPart\(`,
		Test: Test{"./allocator", "TestLocalPart"},
	},
	{
		Name: "reserve-undivided", Hole: "store out of reach for some nodes only",
		Rule: "a reserve is divided by the number of nodes configured",
		Edits: []Edit{{"allocator/bounds.go", `return units / quantity.Units(nodes)
}`, `return units / quantity.Units(min(nodes, 1))
}`}},
		Breaks: "ceiling: above L, where the printed bound is 0", Under: "a store out of reach for both nodes; local_reserve",
		Says:   "ceiling: ",
		Flags:  []string{"--limits", "1", "--algorithm", "fixed_window", "--window", "10s", "--faults", "store-down", "--nodes", "2"},
		Within: 300,
	},
	{
		Name: "each-life-spends-anew", Hole: "store out of reach for some nodes only",
		Rule:   "a node's lives together spend its part of a window once",
		Edits:  []Edit{{"region/admit/fallback.go", `if fresh && f.claims != nil {`, `if fresh && f.claims == nil {`}},
		Breaks: "ceiling: more above L than the printed bound of local", Under: "a store out of reach, a node killed and started again within the window",
		Says: "admits more of what was spent of before",
		Test: Test{"./region/admit", "TestALifeSpendsNoPartTwice"},
	},
	{
		Name: "local-spending-is-not-booked", Hole: "store out of reach for some nodes only",
		Rule:   "what was spent without the store is charged to it afterwards",
		Edits:  []Edit{{"region/admit/fallback_window.go", `if s.due() > s.settled && !s.waits {`, `if s.due() < 0 && !s.waits {`}},
		Breaks: "ceiling: more above L than the printed bound of local", Under: "a store out of reach for part of a window",
		Says: "the store is not told",
		Test: Test{"./region", "TestLocalSpendingIsBooked"},
	},
	{
		Name: "local-spending-is-forgotten-a-window-early", Hole: "store out of reach for some nodes only",
		Rule: "what was spent without the store is kept for it until the next window is over, in which it may count",
		Edits: []Edit{{"region/admit/fallback.go", `k.windows.Opens(k.number + 2)`,
			`k.windows.Opens(k.number + 1)`}},
		Breaks: "ceiling: a sliding window is not charged with what was spent in the one before", Under: "a store out of reach over a window's end",
		Says: "0 are kept for the store",
		Test: Test{"./region/admit", "TestWithoutStoreSpendingIsKeptForTheNextWindow"},
	},
}
