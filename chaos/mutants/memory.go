package mutants

// outlives and twice are the holes of the mutants here: of what a node holds in its memory.
const (
	outlives = "deny cache outliving a raised limit"
	twice    = "chunks returned twice or spent after their cell"
)

var remembered = []Mutant{
	{
		Name: "denial-outlives-a-larger-share", Hole: outlives,
		Rule: "rights that come end the denials of before",
		Edits: []Edit{
			{"region/rights/effects.go", `a.Held.Forget(max(res.Value.Now, e.config.Store.Latest()))`, `a.Held.Forget(0)`},
		},
		Breaks: "liveness: a request is denied although its region has room", Under: "rights borrowed after a denial",
		Says: "FromMemory:true",
		Test: Test{"./region/admit", "TestDenialsEndWithTheirReason"},
	},
	{
		Name: "denial-outlives-a-refund", Hole: outlives,
		Rule: "units that come back end the denials of before",
		Edits: []Edit{
			{"region/admit/receipt.go", `l.forgetDenials(current, at.bucket, max(done.Now, l.store.Latest()))`, `l.forgetDenials(current, at.bucket, 0)`},
		},
		Breaks: "liveness: a request is denied although its region has room", Under: "a refund after a denial",
		Says: "FromMemory:true",
		Test: Test{"./region/admit", "TestDenialsEndWithTheirReason"},
	},
	{
		Name: "denial-outlives-a-reset", Hole: outlives,
		Rule: "a reset ends the denials of before",
		Edits: []Edit{
			{"region/admit/receipt.go", `l.forgetDenials(r, b.ID, done.Now)`, `l.forgetDenials(r, b.ID, 0)`},
		},
		Breaks: "liveness: a request is denied although its region has room", Under: "a reset after a denial",
		Says: "FromMemory:true",
		Test: Test{"./region/admit", "TestDenialsEndWithTheirReason"},
	},
	{
		Name: "denial-outlives-what-was-undone", Hole: outlives,
		Rule: "what a denied request was charged for a moment denies nobody after it",
		Edits: []Edit{
			{"region/admit/spanning.go", `a.Held.Forget(l.store.Latest())`, `a.Held.Forget(0)`},
		},
		Breaks: "liveness: a request is denied although its region has room", Under: "requests that span shards",
		Says: "FromMemory:true",
		Test: Test{"./region/admit", "TestSpanningUndoEndsDenials"},
	},
	{
		Name: "denial-told-to-a-cheaper-request", Hole: outlives,
		Rule: "a denial is told only to requests of its cost and more",
		Edits: []Edit{
			{"region/held/denial.go", `if d == nil || cost < d.Denied || generation`, `if d == nil || generation`},
		},
		Breaks: "liveness: a request is denied although there is room for it", Under: "requests of several costs",
		Says: "FromMemory:true",
		Test: Test{"./region/admit", "TestACheaperRequestAsks"},
	},
	{
		Name: "denial-of-a-recovering-bucket-is-remembered", Hole: outlives,
		Rule: "while a bucket recovers, the store decides each request",
		Edits: []Edit{
			{"region/held/denial.go", `if a.Denied == 0 || a.Verdict.Retry <= 0 || a.State.Shut > a.Now ||`, `if a.Denied == 0 || a.Verdict.Retry <= 0 ||`},
		},
		Breaks: "liveness: a bucket that has recovered denies", Under: "a store that lost its data",
		Says: "denied true, want false",
		Test: Test{"./region/held", "TestDeny"},
	},
	{
		Name: "remembered-denials-are-no-demand", Hole: outlives,
		Rule: "a denial that is told from memory counts as demand",
		Edits: []Edit{
			{"region/rights/observe.go", `		o.State, o.Now = state, now
	}
	o.Denied = min(o.Denied+cost, algorithms.MaxUnits)`, `		o.State, o.Now = state, now
	}`},
		},
		Breaks: "progress: nothing is borrowed for a region that denies", Under: "a flood on an exhausted bucket",
		Says: "denied units are reported as demand, of",
		Test: Test{"./region/admit", "TestAFloodOnAnExhaustedBucket"},
	},
	{
		Name: "nobody-asks-again", Hole: outlives,
		Rule: "one request in a while asks the store although a denial is remembered",
		Edits: []Edit{
			{"region/held/denial.go", `if again := d.again.Load(); int64(now) >= again &&`, `if again := d.again.Load(); again < 0 &&`},
		},
		Breaks: "liveness: what another node made room for is not seen", Under: "refunds by other nodes",
		Says: "nobody asked since",
		Test: Test{"./region/held", "TestDenialsHaveAReason"},
	},
	{
		Name: "late-reply-brings-a-denial-back", Hole: outlives,
		Rule: "an answer from before what is known is ignored",
		Edits: []Edit{
			{"region/held/denial.go", `	m.changed = a.Now - 1 // a reply to an earlier call may come later
`, ``},
		},
		Breaks: "liveness: a request is denied although there is room for it", Under: "replies out of order",
		Says: "denied true, want false",
		Test: Test{"./region/held", "TestDeny"},
	},
}

var chunks = []Mutant{
	{
		Name: "a-suspended-machine-spends-its-chunk", Hole: twice,
		Rule:   "the time in which a machine is suspended counts for what it holds",
		Edits:  []Edit{{"region/held/clock.go", `case shows+added > ahead:`, `case false && shows+added > ahead:`}},
		Breaks: "conservation of what is charged", Under: "a machine suspended into the next window",
		Says: "spent after a minute of suspension",
		Test: Test{"./region/held", "TestASuspendedMachineSpendsNothingOfBefore"},
	},
	{
		Name: "a-node-does-not-see-suspension", Hole: twice,
		Rule:   "the time in which a machine is suspended counts for what it holds",
		Edits:  []Edit{{"region/admit/limiter.go", `return c.Elapsed(), c.Now().Round(0).Sub(begun)`, `return c.Elapsed(), 0 * c.Now().Round(0).Sub(begun)`}},
		Breaks: "conservation of what is charged", Under: "a machine suspended into the next window",
		Says: "after a minute of suspension",
		Test: Test{"./region/admit", "TestALimiterSeesSuspension"},
	},
	{
		Name: "chunk-returned-twice", Hole: twice,
		Rule: "what is left of a chunk is given back once",
		Edits: []Edit{
			{"region/admit/chunks.go", `	for i, r := range l.store.Refunds(ctx, calls) {`, `	l.store.Refunds(ctx, calls)
	for i, r := range l.store.Refunds(ctx, calls) {`},
		},
		Breaks: "ceiling: a label above L", Under: "chunks that are over",
		Says:  "ceiling: ",
		Flags: []string{"--prefetch"}, Within: 250,
	},
	{
		Name: "chunk-returned-and-still-spent", Hole: twice,
		Rule: "what is given back of a chunk is taken out of it",
		Edits: []Edit{
			{"region/held/chunk.go", `	c.ended.Store(true)
	return quantity.Units(c.left.Swap(0))`, `	c.ended.Store(true)
	return quantity.Units(c.left.Load())`},
		},
		Breaks: "ceiling: a label above L", Under: "chunks that are over",
		Says: "granted .* given back",
		Test: Test{"./region/held", "TestUnitsAreConserved"},
	},
	{
		Name: "chunk-spent-after-its-cell", Hole: twice,
		Rule: "a chunk is spent in the cell that it was charged to",
		Edits: []Edit{
			{"region/held/chunk.go", `c.until.Store(int64(g.Asked + min(Life, cell)))`, `c.until.Store(int64(g.Asked + max(min(Life, cell), Life)))`},
		},
		Breaks: "cells: a decision at a time that is not of its cell", Under: "requests at the end of a cell",
		Says:  "answers: ",
		Flags: []string{"--prefetch"}, Within: 50,
	},
	{
		Name: "chunk-spent-under-another-generation", Hole: twice,
		Rule: "a chunk is spent under the generation that it was charged under",
		Edits: []Edit{
			{"region/held/chunk.go", `if c == nil || c.Generation != generation || c.over(now) {`, `if c == nil || c.over(now) {`},
		},
		Breaks: "ceiling: a label above L", Under: "a store that lost its data",
		Says: "took true",
		Test: Test{"./region/held", "TestTake"},
	},
	{
		Name: "chunk-carried-into-another-cell", Hole: twice,
		Rule: "what is left of a chunk of another cell goes back",
		Edits: []Edit{
			{"region/held/chunk.go", `if old != nil && old.State.Cell == c.State.Cell && old.Generation`, `if old != nil && old.Generation`},
		},
		Breaks: "ceiling: a label above L", Under: "requests at the end of a cell",
		Says: "back, .* held, want",
		Test: Test{"./region/held", "TestFilled"},
	},
	{
		Name: "chunk-larger-than-its-part", Hole: twice,
		Rule: "a chunk is at most a fourth of what is free for each node",
		Edits: []Edit{
			{"region/held/chunk.go", `units := min(m.pace.usual(now), Largest(m.free, nodes))`, `units := min(m.pace.usual(now), m.free)`},
		},
		Breaks: "utilisation: units are held by a node that others need", Under: "traffic that moves between nodes",
		Says: "want",
		Test: Test{"./region/held", "TestWant"},
	},
	{
		Name: "chunk-under-way-is-left-at-the-end", Hole: twice,
		Rule: "a node that ends gives back what it has asked for, too",
		Edits: []Edit{
			{"region/admit/chunks.go", `if l.chunks.none() || ctx.Err() != nil`, `if true || ctx.Err() != nil`},
		},
		Breaks: "utilisation: units of a node that ended in order are missing", Under: "a node that ends while it asks",
		Says: "were admitted",
		Test: Test{"./region/admit", "TestChunksUnderWayGoBack"},
	},
}
