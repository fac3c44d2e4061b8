package mutants

var dynamics = []Mutant{
	{
		Name: "asks-the-poorest", Hole: "asking the poorest lender first",
		Rule: "who has more spare is asked for more",
		Edits: []Edit{{"allocator/divide.go",
			`weights[i] = o.Back + o.Spare
	}`,
			`weights[i] = max(total-o.Back-o.Spare, 1)
	}`}},
		Breaks: "use: asks refused, and false denials", Under: "none; one region short, of the others one busy and one idle",
		Says:   "is denied falsely",
		Flags:  []string{"--demand", "zipf", "--algorithm", "fixed_window", "--most", "5000"},
		Within: 3,
	},
	{
		Name: "moves-the-whole-gap", Hole: "oscillation under anti-phase demand",
		Rule:   "voluntary moves close half the gap at a tick",
		Edits:  []Edit{{"allocator/need.go", `if inNeed || short <= 1 {`, `if inNeed || short >= 0 {`}},
		Breaks: "use: rights moved to and fro", Under: "none; anti-phase demand of about a round trip",
		Says: `Move\(`,
		Test: Test{"./allocator", "TestShortAndMove"},
	},
	{
		Name: "retries-are-demand", Hole: "retry storms as demand",
		Rule:   "denied units count at most twice what was counted before",
		Edits:  []Edit{{"allocator/demand.go", `return min(denied, 2*max(before, admitted, 1))`, `return denied`}},
		Breaks: "use: Jain's index; a storm takes what others need", Under: "none; one region's callers retry at once",
		Says: "want them counted at twice what was admitted",
		Test: Test{"./allocator", "TestDemand"},
	},
	{
		Name: "retry-is-charged-again", Hole: "client retries charged several times",
		Rule: "a request with an id is charged once",
		Edits: []Edit{{"algorithms/twin.go",
			`before, again := w.decided[c.Once]`,
			`before, again := w.decided["none"]`}},
		Breaks: "local: one request is charged twice", Under: "replies of the store lost, requests sent again",
		Says:   "once: ",
		Within: 300,
	},
	{
		Name: "lends-its-own-demand", Hole: "lender regret",
		Rule: "a lender keeps what it needs itself, at least over a round trip and a tick",
		Edits: []Edit{{"allocator/exchange/lender.go",
			`l.Kept = allocator.Kept(`,
			`l.Kept = 0 * allocator.Kept(`}},
		Breaks: "use: false denials at the lender", Under: "none; both regions busy",
		Says:   "is denied falsely",
		Flags:  []string{"--demand", "surge", "--algorithm", "token_bucket", "--most", "8000"},
		Within: 3,
	},
	{
		Name: "never-forgets", Hole: "idle key that never lets go of its state",
		Rule: "a bucket that nobody uses or asks about is forgotten",
		Edits: []Edit{{"allocator/exchange/machine.go",
			`idle := now.Sub(v.active) > idleAfter && (`,
			`idle := now < 0 && (`}},
		Breaks: "liveness: state returns to its base line", Under: "none; keys used once",
		Says: "us still remembers the bucket when the cell",
		Test: Test{"./allocator/exchange", "TestMovedRightsAreRemembered"},
	},
}
