package mutants

// The holes of the mutants here: of refunds, resets, and what a limit may say besides.
const (
	givenTwice = "refund of more than was charged"
	withUse    = "rights cleared together with use"
	mayDeny    = "limit that denies although it must not"
)

var said = []Mutant{
	{
		Name: "refund-of-twice-the-tokens", Hole: givenTwice,
		Rule: "a refund puts back the tokens that were taken",
		Edits: []Edit{{"algorithms/token_bucket.go", `	t.level += units * quantity.Units(t.ticks)
	t.clip(`, `	t.level += 2 * units * quantity.Units(t.ticks)
	t.clip(`}},
		Breaks: "ceiling: more than the limit and what was given back", Under: "refunds",
		Says:  "ceiling: ",
		Flags: []string{"--varied", "--algorithm", "token_bucket"}, Within: 300,
	},
	{
		Name: "refund-of-twice-the-entry", Hole: givenTwice,
		Rule: "a refund takes the units that were charged out of a log",
		Edits: []Edit{{"algorithms/sliding_window_log.go", `			l.entries[i].units -= units
`, `			l.entries[i].units -= 2 * units
`}},
		Breaks: "ceiling: more in a window than the limit and what was given back", Under: "refunds of logs",
		Says:  "ceiling: ",
		Flags: []string{"--varied", "--algorithm", "sliding_window_log"}, Within: 300,
	},
	{
		Name: "reset-forgets-what-is-lent", Hole: withUse,
		Rule: "a reset clears the use of a bucket, and no row",
		Edits: []Edit{{"algorithms/twin.go", `	l.reset()
	l.save()
`, `	l.reset()
	l.save()
	clear(h.rows)
`}},
		Breaks: "conservation: shares above the limit", Under: "resets of buckets of which rights are lent",
		Says:  "conservation: ",
		Flags: []string{"--varied"}, Within: 300,
	},
	{
		Name: "shadow-denies", Hole: mayDeny,
		Rule: "a shadow limit never denies",
		Edits: []Edit{{"algorithms/call.go", `{ return !t.Shadow && !t.Alternative }`,
			`{ return !t.Alternative }`}},
		Breaks: "liveness: a denial by a shadow limit", Under: "shadow limits that are used up",
		Says:  "shadow: ",
		Flags: []string{"--varied"}, Within: 100,
	},
}
