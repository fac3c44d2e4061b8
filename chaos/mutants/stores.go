package mutants

// stores are the rules by which a region has one store.
var stores = []Mutant{
	{
		Name: "second-store-is-begun", Hole: "second store of a region",
		Rule: "no generation is begun while a node of the region decides with another store",
		Edits: []Edit{{"region/rivals/begin.go",
			`if a.Use == peer.StoreDecides && a.Origin.ID != b.Found {`,
			`if a.Use == peer.StoreDecides && a.Origin.ID != b.Found && a.Node == "" {`}},
		Breaks: "ceiling: a label above L", Under: "a node with another redis.url",
		Says: "knows this region to have a store, of",
		Test: Test{"./region", "TestNoSecondStoreIsBegun"},
	},
	{
		Name: "bootstrap-asks-nobody", Hole: "second store of a region",
		Rule: "a region that another knows to have a store is not bootstrapped",
		Edits: []Edit{{"region/rivals/begin.go", `if a.Known > 0 {`,
			`if a.Known > 1<<62 {`}},
		Breaks: "ceiling: a label above L", Under: "--bootstrap of a region that has served",
		Says: "knows this region to have a store",
		Test: Test{"./region", "TestNoSecondStoreIsBegun"},
	},
	{
		Name: "second-store-serves", Hole: "second store of a region",
		Rule: "a node stops when another decides with an older store",
		Edits: []Edit{{"region/store/store.go", `if err == nil && withheld {`,
			`if err == nil && withheld && held == nil {`}},
		Breaks: "ceiling: a label above L", Under: "two stores, when their nodes hear each other",
		Says: "after the younger store stopped",
		Test: Test{"./region", "TestASecondStoreStops"},
	},
	{
		Name: "serves-before-it-asks", Hole: "second store of a region",
		Rule: "a node asks the others which store they have before it serves",
		Edits: []Edit{{"region/node.go", `	n.rivals.AskFirst(ctx)
`, ``}},
		Breaks: "ceiling: a label above L", Under: "a restart on a second store",
		Says: "serves with its store after a restart",
		Test: Test{"./region", "TestASecondStoreStops"},
	},
	{
		Name: "namesake-is-not-asked", Hole: "two processes with one name",
		Rule: "a node does not start where another process runs under its name",
		Edits: []Edit{{"region/node.go", `	if err := n.aloneWithItsName(ctx); err != nil {
		return err
	}
`, ``}},
		Breaks: "ceiling: a node's part without its store spent twice", Under: "a second process with a node's name",
		Says: "it starts, or says",
		Test: Test{"./region", "TestANamesakeIsRefused"},
	},
	{
		Name: "stopped-store-wins-later", Hole: "second store of a region",
		Rule: "a store that stopped for another does not win against its successor",
		Edits: []Edit{{"region/rivals/judge.go", `	if stoppedBefore != outlasted {
		return stoppedBefore
	}
`, ``}, {"region/rivals/judge.go", `	stoppedBefore := slices.Contains(a.Outlasted, own.ID)
	outlasted := slices.Contains(j.outlasted, a.Origin.ID)
`, ``}},
		Breaks: "liveness: all nodes of the region but one stop",
		Says:   "serves with its store after a restart",
		Under:  "FLUSHALL of the older of two stores, and a restart on the other",
		Test:   Test{"./region", "TestASecondStoreStops"},
	},
	{
		Name: "older-store-by-its-generation", Hole: "second store of a region",
		Rule: "of two stores the older is the one whose data reach back further, whatever generation it is in",
		Edits: []Edit{{"region/store/identity.go",
			`return o.Since < other.Since || o.Since == other.Since && o.ID < other.ID`,
			`return o.Generation < other.Generation || o.Generation == other.Generation && o.ID < other.ID`}},
		Breaks: "ceiling: the store with the longer memory stops", Under: "two stores, of which the older has opened another generation",
		Says: "stopped false, want true",
		Test: Test{"./region/rivals", "TestJudge"},
	},
	{
		Name: "gossip-of-a-lost-store", Hole: "second store of a region",
		Rule: "what gossip shows of a store that the node had itself stops nobody",
		Edits: []Edit{{"region/rivals/judge.go",
			`return slices.Contains(j.had, a.Origin.ID) || a.Origin.Generation <= j.before`,
			`return a.Origin.ID == ""`}},
		Breaks: "liveness: a region stops after a loss of its store",
		Says:   "stopped true",
		Under:  "FLUSHALL, and a node that died",
		Test:   Test{"./region/rivals", "TestGossipOfAStoreThatWasLost"},
	},
	{
		Name: "gossip-stops-for-ever", Hole: "second store of a region",
		Rule: "gossip alone stops a node for a minute an hour",
		Edits: []Edit{{"region/rivals/judge.go", `if now.Before(j.hearsayUntil) {`,
			`if !now.Before(j.hearsayUntil.Add(-hearsayStops)) {`}},
		Breaks: "liveness: whoever reaches gossip stops a region", Under: "a forged member",
		Says: "stopped true, want false",
		Test: Test{"./region/rivals", "TestJudge"},
	},
	{
		Name: "second-store-leaves-a-fence", Hole: "second store of a region",
		Rule: "the store that goes on begins a generation later than that of the one that stopped",
		Edits: []Edit{{"region/rivals/rivals.go", `	w.renew(ctx, own, rivals)
`, ``}},
		Breaks: "liveness: others take no rows of the region", Under: "a second store that recovered",
		Says: "lends nothing",
		Test: Test{"./region", "TestASecondStoreLeavesNoTrace"},
	},
}
