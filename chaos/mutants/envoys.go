package mutants

// The holes of the mutants here: of what Envoys are told to admit by themselves.
const (
	beforehand = "assignment not taken beforehand"
	broken     = "assignment taken back while its stream is broken"
	tooLong    = "time to live by the wrong clock"
	rebuilt    = "token buckets rebuilt full"
	twoNodes   = "two nodes assigning the same rate"
	kept       = "assigned rights kept from those who want them"
	windowed   = "units of a window admitted twice"
)

var assigned = []Mutant{
	{
		Name: "rate-assigned-that-is-not-held", Hole: beforehand,
		Rule: "the rates assigned of a cell are at most what the node holds of it",
		Edits: []Edit{
			{"allocator/assign/send.go", `return p.rateOf(c.own()) - c.used + s.takes(p, c)`, `return p.rateOf(p.Entitlement) - 0*s.takes(p, c)`},
			{"allocator/assign/aim.go", `left := fill(m.wants, min(p.rate(now), p.wanted))`, `left := fill(m.wants, p.wanted)`},
		},
		Breaks: "ceiling: a pooled bucket below zero", Under: "several Envoys",
		Says:  "ceiling: ",
		Flags: []string{"--envoys"}, Within: 40,
	},
	{
		Name: "next-cell-assigned-that-is-not-held", Hole: beforehand,
		Rule: "an assignment ends within the last cell of which its rate is held",
		Edits: []Edit{
			{"allocator/assign/send.go", `			if p.room(now, s, &p.cells[i]) < rate {
				break
			}`, `			if i == 0 && p.room(now, s, &p.cells[i]) < rate {
				break
			}`},
		},
		Breaks: "ceiling: a pooled bucket below zero", Under: "rights that move from cell to cell",
		Says: "a second, and it holds",
		Test: Test{"./allocator/assign", "TestNothingIsAdmittedTwice"},
	},
	{
		Name: "rate-taken-back-when-the-stream-breaks", Hole: broken,
		Rule: "an Envoy whose stream is over goes on until its assignment ends",
		Edits: []Edit{
			{"allocator/assign/share.go", `	s.gone, s.demand, s.admitted, s.denied, s.hidden = true, 0, 0, 0, 0`, `	s.gone, s.demand, s.admitted, s.denied, s.hidden, s.grants = true, 0, 0, 0, 0, nil`},
		},
		Breaks: "ceiling: a pooled bucket below zero", Under: "streams that break",
		Says:  "ceiling: ",
		Flags: []string{"--envoys"}, Within: 100,
	},
	{
		Name: "rate-taken-back-while-the-stream-is-silent", Hole: broken,
		Rule: "what a silent Envoy has stays held until it reports, or its stream has ended and a time to live is over",
		Edits: []Edit{
			{"allocator/assign/share.go", `	if !s.gone && s.silent(now) {`, `	if !s.gone && s.silent(now) && false {`},
		},
		Breaks: "ceiling: an Envoy that goes on after a pause", Under: "Envoys that miss reports",
		Says: "a silent Envoy may have",
		Test: Test{"./allocator/assign", "TestASilentEnvoyKeepsWhatItHas"},
	},
	{
		Name: "report-counted-twice", Hole: kept,
		Rule: "a report counts once",
		Edits: []Edit{
			{"allocator/assign/share.go", `s.unread[0] = min(s.unread[0]+allowed, maxReport)`, `s.unread[0] = min(s.unread[0]+2*allowed, maxReport)`},
		},
		Breaks: "denied: rights held for a demand that is not there", Under: "any report",
		Says: "thousandths a second",
		Test: Test{"./allocator/assign", "TestAReportCountsOnce"},
	},
	{
		Name: "rate-given-away-when-a-smaller-one-is-sent", Hole: broken,
		Rule: "an Envoy may have its old rate until it reports after the new one has come",
		Edits: []Edit{
			{"allocator/assign/share.go", `g.replaced > 0 && s.heard >= taken.Add(Late)`, `g.replaced > 0`},
		},
		Breaks: "ceiling: a pooled bucket below zero", Under: "messages that take a while",
		Says: "a second, and it holds",
		Test: Test{"./allocator/assign", "TestNothingIsAdmittedTwice"},
	},
	{
		Name: "time-to-live-from-when-it-is-sent", Hole: tooLong,
		Rule: "an Envoy counts the time to live from when it takes the message, at most a second later",
		Edits: []Edit{
			{"allocator/assign/send.go", `ttl = min(ttl, (end.Sub(now)-Late)/second)`, `ttl = min(ttl, end.Sub(now)/second)`},
			{"allocator/assign/share.go", `until: now.Add(Late + ttl*second), ttl: ttl, pools: s.pools})`, `until: now.Add(ttl * second), ttl: ttl, pools: s.pools})`},
			{"allocator/assign/share.go", `	g.until = max(g.until, now.Add(Late+ttl*second))`, `	g.until = max(g.until, now.Add(ttl*second))`},
		},
		Breaks: "ceiling: a pooled bucket below zero", Under: "messages that take a while",
		Says: "a second, and it holds",
		Test: Test{"./allocator/assign", "TestNothingIsAdmittedTwice"},
	},
	{
		Name: "burst-of-an-assignment-not-paid", Hole: rebuilt,
		Rule: "the tokens that a new or changed assignment starts with are charged to the store",
		Edits: []Edit{
			{"allocator/assign/purse.go", `		p.purse.tokens -= tokens`, `		p.purse.tokens -= 0 * tokens`},
		},
		Breaks: "ceiling: a pooled bucket below zero", Under: "assignments that change",
		Says: "tokens assigned",
		Test: Test{"./allocator/assign", "TestNothingIsAdmittedTwice"},
	},
	{
		Name: "burst-kept-that-a-document-lowered", Hole: rebuilt,
		Rule: "where Envoys may hold fewer tokens, what they have too much of is not renewed",
		Edits: []Edit{
			{"allocator/assign/send.go", `	if last.lapse() {`, `	if last.lapse() && last == nil {`},
		},
		Breaks: "ceiling: tokens of Envoys and of the store add up", Under: "Envoys that want the same all the time",
		Says: "tokens out",
		Test: Test{"./allocator/assign", "TestEnvoysMayHoldFewerTokens"},
	},
	{
		Name: "purse-kept-that-a-document-lowered", Hole: rebuilt,
		Rule: "tokens for which a newer document leaves no room are lost",
		Edits: []Edit{
			{"allocator/assign/purse.go", `	p.purse.tokens = min(p.purse.tokens, max(p.Burst/nodes-out, 0))`, ``},
		},
		Breaks: "ceiling: tokens of Envoys and of the store add up", Under: "a lower max_burst",
		Says: "tokens out",
		Test: Test{"./allocator/assign", "TestNothingIsAdmittedTwiceWhenEnvoysMayHoldFewer"},
	},
	{
		Name: "ended-assignment-renewed-for-nothing", Hole: rebuilt,
		Rule: "an assignment that may have ended at its Envoy starts full again, and is paid again",
		Edits: []Edit{
			{"allocator/assign/share.go", `if g.replaced > 0 || g.ends <= now.Add(Late) || !slices.Equal`, `if g.replaced > 0 || !slices.Equal`},
		},
		Breaks: "ceiling: a pooled bucket below zero", Under: "assignments that end before they are renewed",
		Says: "tokens assigned",
		Test: Test{"./allocator/assign", "TestNothingIsAdmittedTwice"},
	},
	{
		Name: "burst-of-an-earlier-process-assigned-anew", Hole: twoNodes,
		Rule: "Envoys that an earlier process told may have all that the node may tell them of bursts",
		Edits: []Edit{
			{"allocator/assign/purse.go", `	if p.haunted() && !p.Counted {`, `	if false {`},
		},
		Breaks: "ceiling: a pooled bucket below zero", Under: "nodes that are started anew",
		Says: "Envoys may hold",
		Test: Test{"./allocator/assign", "TestNothingIsAdmittedTwice"},
	},
	{
		Name: "burst-before-what-an-earlier-process-held-is-known", Hole: twoNodes,
		Rule: "a process that has not heard what it held of the cell takes no bursts",
		Edits: []Edit{
			{"allocator/assign/pool.go", `return len(p.cells) == 0 || !p.cells[0].read ||`, `return false ||`},
		},
		Breaks: "ceiling: a pooled bucket below zero", Under: "nodes that are started anew, and answers lost",
		Says: "Envoys may hold",
		Test: Test{"./allocator/assign", "TestNothingIsAdmittedTwice"},
	},
	{
		Name: "burst-of-envoys-in-the-store-too", Hole: rebuilt,
		Rule: "what Envoys' buckets may hold comes out of the stores' burst",
		Edits: []Edit{
			{"policy/assign.go", `return l.Limit - l.Assign.NoAssignment, l.Burst - l.EnvoyBurst()`, `return l.Limit - l.Assign.NoAssignment, l.Burst`},
		},
		Breaks: "ceiling: a pooled bucket below zero", Under: "Envoys and callers of the store at once",
		Says: "the stores have a rate of",
		Test: Test{"./region/rules", "TestEnvoysHaveAPartOfTheLimit"},
	},
	{
		Name: "assigned-rate-admitted-by-the-store-too", Hole: twoNodes,
		Rule: "what a node holds of a cell the store neither admits, nor lends, nor gives to another node",
		Edits: []Edit{
			{"algorithms/twin_assign.go", `	more := max(min(c.Held-row.Lent, room), 0)`, `	more := max(c.Held-row.Lent, 0)`},
		},
		Breaks: "ceiling: a pooled bucket below zero", Under: "more demand than the limit",
		Says:  "local: ",
		Flags: []string{"--envoys"}, Within: 40,
	},
	{
		Name: "rate-of-an-earlier-process-assigned-anew", Hole: twoNodes,
		Rule: "what a node held before it was started anew is in force until its cell ends",
		Edits: []Edit{
			{"allocator/assign/pool.go", `c.read, c.ghost, c.again = true, h.Held-h.Returned, now`, `c.read, c.ghost, c.again = true, 0, now`},
		},
		Breaks: "ceiling: a pooled bucket below zero", Under: "nodes that are started anew",
		Says: "a second, and it holds",
		Test: Test{"./allocator/assign", "TestNothingIsAdmittedTwice"},
	},
	{
		Name: "tokens-of-a-window-not-held", Hole: windowed,
		Rule: "of a window a node holds the burst of an assignment, too",
		Edits: []Edit{
			{"allocator/assign/window.go", `return bursts*int64(g.burst) + most(`, `return 0*bursts + most(`},
			{"allocator/assign/window.go", `int64(burst)+most(rate, length) <=`, `most(rate, length) <=`},
		},
		Breaks: "ceiling: units above what a node holds", Under: "more demand than the limit",
		Says: "tokens, and it holds",
		Test: Test{"./allocator/assign", "TestNothingIsAdmittedTwice"},
	},
	{
		Name: "report-under-way-covers-what-came-after", Hole: windowed,
		Rule: "a report may have been under way for a second: it shows nothing of that time",
		Edits: []Edit{
			{"allocator/assign/window.go", `s.read = max(s.read, now.Add(-Late))`, `s.read = max(s.read, now)`},
		},
		Breaks: "ceiling: units above what a node holds", Under: "messages that take a second",
		Says: "tokens, and it holds",
		Test: Test{"./allocator/assign", "TestNothingIsAdmittedTwice"},
	},
	{
		Name: "reported-units-of-a-window-not-spent", Hole: windowed,
		Rule: "what an Envoy reports that it admitted stays spent until the window is over",
		Edits: []Edit{
			{"allocator/assign/window.go", `c.spent += min(units, could)`, `c.spent += 0 * min(units, could)`},
		},
		Breaks: "ceiling: units above what a node holds", Under: "Envoys that report",
		Says:  "ceiling: ",
		Flags: []string{"--envoys"}, Within: 40,
	},
	{
		Name: "units-of-a-broken-stream-come-free", Hole: windowed,
		Rule: "an assignment of which no report will come counts as spent",
		Edits: []Edit{
			{"allocator/assign/window.go", `				c.spent += s.open(g, from, to)`, `				c.spent += 0 * s.open(g, from, to)`},
		},
		Breaks: "ceiling: units above what a node holds", Under: "streams that break",
		Says: "tokens, and it holds",
		Test: Test{"./allocator/assign", "TestNothingIsAdmittedTwice"},
	},
	{
		Name: "assignment-over-a-window's-end-of-one-window", Hole: windowed,
		Rule: "an assignment that lasts into the next window is held of both",
		Edits: []Edit{
			{"allocator/assign/window.go", `	return length == 0 || int64(burst)`, `	return length == 0 || from > now || int64(burst)`},
			{"allocator/assign/window.go", `	return s.open(&renewed, from, to)-s.open(g, from, to) <= p.free(c)`, `	return from > now || s.open(&renewed, from, to)-s.open(g, from, to) <= p.free(c)`},
		},
		Breaks: "ceiling: units above what a node holds", Under: "windows that end",
		Says: "tokens, and it holds",
		Test: Test{"./allocator/assign", "TestNothingIsAdmittedTwice"},
	},
	{
		Name: "assigned-units-not-shown-as-used", Hole: windowed,
		Rule: "what is assigned of a window counts as used, so that a loss restores it",
		Edits: []Edit{
			{"algorithms/fixed_window.go", `share, used := w.rights(w.cell)+held, w.used+held`, `share, used := w.rights(w.cell)+held, w.used`},
		},
		Breaks: "ceiling: units restored after a loss", Under: "a bucket that is deleted",
		Says: "used: .* want",
		Test: Test{"./algorithms", "TestALostHoldCountsAsUsed"},
	},
	{
		Name: "lost-units-held-once-more-unseen", Hole: windowed,
		Rule: "a node that held more than the store knows is told so before it holds anything",
		Edits: []Edit{
			{"algorithms/twin_assign.go", `	if row.Lent < c.Known {`, `	if row.Lent < 0*c.Known {`},
		},
		Breaks: "denied: units held twice", Under: "a bucket that is deleted",
		Says: "lender, at",
		Test: Test{"./algorithms", "TestALostHoldCountsAsUsed"},
	},
	{
		Name: "lenders-wait-for-the-cell's-end", Hole: kept,
		Rule: "a node assigns no more than its part of the water-fill, so that borrowed rights go back",
		Edits: []Edit{
			{"allocator/assign/pool.go", `	if !p.allotment.bound {`, `	if true {`},
		},
		Breaks: "rights come back late", Under: "a region that wants its own",
		Says: "a second and the node holds",
		Test: Test{"./allocator/assign", "TestAllotmentIsKept"},
	},
}
