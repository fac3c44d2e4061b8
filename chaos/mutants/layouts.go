package mutants

var layouts = []Mutant{
	{
		Name: "layout-uncompared", Hole: "store that another version wrote",
		Rule: "a store of another layout is opened as after a loss",
		Edits: []Edit{{"region/store/looks.go",
			`return l.Generation != 0 && l.Layout != algorithms.Layout }`,
			`return l.Generation != 0 && l.Layout < 0 }`}},
		Breaks: "ceiling: use and rows that another version wrote are read wrong", Under: "an upgrade, or a way back",
		Says: "want a loss because of layout",
		Test: Test{"./region/store", "TestOpenAnotherLayout"},
	},
	{
		Name: "layouts-take-turns", Hole: "store that another version wrote",
		Rule: "a node gives its store up to a version of another layout that came later",
		Edits: []Edit{{"region/store/looks.go",
			`if worked != 0 && l.isForeign() && l.Generation > worked {`,
			`if worked != 0 && l.isForeign() && l.Generation < worked {`}},
		Breaks: "liveness: nodes of two versions lose each other's store, again and again", Under: "an upgrade node by node",
		Says: "another version",
		Test: Test{"./region/store", "TestAnotherLayoutComesLast"},
	},
	{
		Name: "layout-unwritten", Hole: "store that another version wrote",
		Rule:   "who begins a generation writes the layout into the token",
		Edits:  []Edit{{"algorithms/open.lua", `, 'layout', ARGV[10])`, `)`}},
		Breaks: "ceiling: another version takes the store for one of its own", Under: "an upgrade, or a way back",
		Says: "want a loss because of layout",
		Test: Test{"./region/store", "TestOpenAnotherLayout"},
	},
}
