package mutants

// clientHolds is the hole of the mutants here: of units that a client takes and gives back.
const clientHolds = "units that a client holds given back twice or spent too late"

var clients = []Mutant{
	{
		Name: "client-returns-what-it-spent", Hole: clientHolds,
		Rule: "a client gives back what it did not admit",
		Edits: []Edit{
			{"client/units.go", `	g, left := chunk.Of.(*grant), int64(chunk.End())
`, `	g := chunk.Of.(*grant)
	left := g.units + 0*int64(chunk.End())
`},
		},
		Breaks: "ceiling: a label above L", Under: "clients that hold units",
		Says: "admitted and .* left of",
		Test: Test{"./client", "TestEachUnitCountsOnce"},
	},
	{
		Name: "client-spends-after-the-cell", Hole: clientHolds,
		Rule: "a client spends units within the time that the node says",
		Edits: []Edit{
			{"client/units.go", `a.Now.Add(r.GetSpendWithin().AsDuration().Microseconds())`, `a.Now.Add(1_000_000)`},
		},
		Breaks: "cells: a decision at a time that is not of its cell", Under: "units that are taken at the end of a cell",
		Says: "ms after units were asked for one is spent",
		Test: Test{"./client", "TestUnitsAreSpentInTime"},
	},
	{
		Name: "client-counts-from-the-answer", Hole: clientHolds,
		Rule: "the time to spend units in counts from before they were asked for",
		Edits: []Edit{
			{"client/units.go", `	asked := c.clock.Elapsed()
	r, err := c.take(ctx, w.of, w.units)
`, `	r, err := c.take(ctx, w.of, w.units)
	asked := c.clock.Elapsed()
`},
		},
		Breaks: "cells: a decision at a time that is not of its cell", Under: "answers that take long",
		Says: "ms after units were asked for one is spent",
		Test: Test{"./client", "TestUnitsAreSpentInTime"},
	},
	{
		Name: "client-merges-receipts", Hole: clientHolds,
		Rule: "units go back by the receipt that they were taken with",
		Edits: []Edit{
			{"region/held/chunk.go", `old.Of == nil && c.Of == nil {`, `true {`},
		},
		Breaks: "utilisation: what is left of two grants cannot go back", Under: "clients that take units again",
		Says: "a closed client took",
		Test: Test{"./client", "TestUnitsAreTakenEarly"},
	},
	{
		Name: "each-part-goes-back", Hole: clientHolds,
		Rule: "a receipt gives back once, however many units",
		Edits: []Edit{
			{"region/admit/take.go", `	r.Cost = int64(units)
`, `	r.Cost, r.Id = int64(units), fmt.Sprint(r.GetId(), units)
`},
		},
		Breaks: "ceiling: a label above L", Under: "a receipt that is brought twice",
		Says: "gave back",
		Test: Test{"./region", "TestGiveBackGivesBackOnce"},
	},
	{
		Name: "more-goes-back-than-was-charged", Hole: clientHolds,
		Rule: "a receipt gives back as much as it is for, at most",
		Edits: []Edit{
			{"region/admit/take.go", `if units < 1 || int64(units) > r.GetCost() {`, `if units < 1 {`},
		},
		Breaks: "ceiling: a label above L", Under: "a client that errs",
		Says: "units of",
		Test: Test{"./region", "TestGiveBackGivesBackOnce"},
	},
	{
		Name: "taken-for-a-second-whatever-the-cell", Hole: clientHolds,
		Rule: "units are to be spent before the cell ends that they were charged to",
		Edits: []Edit{
			{"region/admit/take.go", `within = min(within, microseconds(`, `within = max(within, microseconds(`},
		},
		Breaks: "cells: a decision at a time that is not of its cell", Under: "units that are taken at the end of a cell",
		Says: "ms before a cell ends",
		Test: Test{"./region", "TestTakenUnitsEndWithTheirCell"},
	},
	{
		Name: "clients-take-all-that-is-free", Hole: clientHolds,
		Rule: "a client is given at most a fourth of what is free for each node",
		Edits: []Edit{
			{"region/admit/take.go", `a.Held.Part(max(l.config.Nodes, 1))`, `8*a.Held.Part(max(l.config.Nodes, 1))`},
		},
		Breaks: "utilisation: units are held by a client that others need", Under: "several clients",
		Says: "request .* for",
		Test: Test{"./region", "TestTakeIsBounded"},
	},
}
