package mutants

// otherPeriods is the hole of the mutants here.
const otherPeriods = "periods of a calendar that begin elsewhere"

var periods = []Mutant{
	{
		Name: "repeated-hour-belongs-to-the-day-before", Hole: otherPeriods,
		Rule: "where clocks are set back over midnight, the day that has begun goes on",
		Edits: []Edit{{"calendar/calendar.go",
			`for c.begin(period+1) <= t && c.clamp(period+1) == period+1 {`, `for false {`}},
		Breaks: "order: a day begins twice", Under: "a zone that sets its clocks back at 00:01",
		Says: "is in period",
		Test: Test{"./calendar", "TestPeriodsBeginWhenGosCalendarSaysSo"},
	},
	{
		Name: "skipped-midnight-began-before", Hole: otherPeriods,
		Rule: "where clocks skip midnight, the day begins when they have skipped it",
		Edits: []Edit{{"calendar/calendar.go", `begins = max(midnight-after, to)`,
			`begins = midnight - after`}},
		Breaks: "ceiling: a cell is labelled otherwise than the judge's calendar says",
		Says:   "ceiling: ",
		Under:  "requests in the hour before the day",
		Flags:  []string{"--calendar", "--algorithm", "fixed_window"}, Within: 300,
	},
	{
		Name: "rows-of-a-period-go-before-it-is-over-for-all", Hole: otherPeriods,
		Rule: "a node that says that a period is over leaves it to no other node of the region",
		Edits: []Edit{{"algorithms/ledger.go",
			`if h.Calendar != nil && h.bucket.cell < h.cell {`, `if h.Calendar != nil && h.bucket.cell < 0 {`}},
		Breaks: "ceiling: what a period had lent is used again", Under: "nodes of one region with other rules of a time zone",
		Says: "admitted and .* lent in cell",
		Test: Test{"./algorithms", "TestNodesWithOtherRules"},
	},
	{
		Name: "a-period-is-taken-up-again", Hole: otherPeriods,
		Rule: "a bucket whose next period has begun for one node is in it for all",
		Edits: []Edit{{"algorithms/ledger.go",
			`if t.Calendar != nil && b.cell == h.cell+1 {`, `if t.Calendar != nil && b.cell < 0 {`}},
		Breaks: "ceiling: a period is used once more", Under: "nodes of one region with other rules of a time zone",
		Says: "admitted and .* lent in cell",
		Test: Test{"./algorithms", "TestNodesWithOtherRules"},
	},
}
