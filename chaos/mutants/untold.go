package mutants

var untold = []Mutant{
	{
		Name: "untold-use-is-nothing", Hole: "use that a node has not told of",
		Rule: "as long as not all nodes told what they used, as much counts as used as any region can have had",
		Edits: []Edit{
			{"region/rights/recovery.go", `Cap: r.Cap, Most: r.Most,`, `Cap: r.Cap, Most: min(r.Most, 0),`},
		},
		Breaks: "ceiling: a label above L", Under: "FLUSHALL; the mate that decided dead, cut off or standing still",
		Says: "ceiling: ",
		Test: Test{"./chaos/sim", "TestPlansThatOnceOverspent"},
	},
	{
		Name: "one-memory-suffices", Hole: "use that a node has not told of",
		Rule: "use is known once every node of the region told",
		Edits: []Edit{
			{"allocator/exchange/recovery.go", `	useKnown := m.toldUse(r)`, `	useKnown := len(r.nodesAnswered) >= 1`},
		},
		Breaks: "ceiling: a label above L", Under: "FLUSHALL; the mate that decided dead, cut off or standing still",
		Says: "the regions have more than the limit",
		Test: Test{"./allocator/exchange", "TestEveryRecoveryKeepsTheCeiling"},
	},
	{
		Name: "who-is-gone-is-not-waited-for", Hole: "use that a node has not told of",
		Rule:   "a node that the store answered in the time that counts is waited for, whatever number of others told",
		Edits:  []Edit{{"allocator/exchange/named.go", `if max(n.last, n.perhaps).Add(namedLag) >= counts && n.first`, `if n.last < 0 && n.first`}},
		Breaks: "ceiling: what one node alone admitted is had once more", Under: "a rolling update with new names, then FLUSHALL",
		Says: "admits what us/n3 admitted before",
		Test: Test{"./region", "TestANodeThatIsGoneUnderItsName"},
	},
	{
		Name: "any-memory-is-whole", Hole: "use that a node has not told of",
		Rule: "a node's word is all that it used only if it reaches back to what may still count",
		Edits: []Edit{
			{"allocator/exchange/copied.go", `return known <= from`, `return known <= from || t.itself`},
		},
		Breaks: "ceiling: a label above L", Under: "a journal lost, then FLUSHALL",
		Says: "known from .* after the beginning",
		Test: Test{"./allocator/exchange", "TestUseIsKnownFromItsBeginning"},
	},
	{
		Name: "late-word-is-dropped", Hole: "use that a node has not told of",
		Rule: "what a node tells late that it used is charged",
		Edits: []Edit{
			{"algorithms/restore.lua", `  else
    s:book(of, math.max(units - h.base, 0))
  end
  s:save()
  changed`, `  else
    s:book(of, 0)
  end
  s:save()
  changed`},
			{"algorithms/twin_recovery.go", `max(u.Units-h.base, 0)`, `min(max(u.Units-h.base, 0), 0)`},
		},
		Breaks: "ceiling: a label above L", Under: "FLUSHALL; the mate that decided is heard later",
		Says: "all told: ",
		Test: Test{"./algorithms", "TestUseThatNobodyToldOfCountsAsAll"},
	},
	{
		Name: "late-word-is-dropped-by-lua", Hole: "use that a node has not told of",
		Rule: "the same in the script alone",
		Edits: []Edit{
			{"algorithms/restore.lua", `  else
    s:book(of, math.max(units - h.base, 0))
  end
  s:save()
  changed`, `  else
    s:book(of, 0)
  end
  s:save()
  changed`},
		},
		Breaks: "ceiling: a label above L", Under: "FLUSHALL; the mate that decided is heard later",
		Says: "restore ",
		Test: Test{"./algorithms", "TestUseToldLate"},
	},
	{
		Name: "late-word-is-all-anew", Hole: "use that a node has not told of",
		Rule: "what a copy of the store knew of is part of what the nodes tell",
		Edits: []Edit{
			{"algorithms/twin_recovery.go", `max(u.Units-h.base, 0)`, `max(u.Units, 0)`},
		},
		Breaks: "use: units are charged twice", Under: "a lagging replica promoted; a mate is heard later",
		Says: "the copy knew of",
		Test: Test{"./algorithms", "TestWhatACopyKnewIsPartOfWhatIsTold"},
	},
	{
		Name: "used-bucket-opens", Hole: "closed bucket that a node used",
		Rule: "a closed bucket is opened only if no node used it",
		Edits: []Edit{
			{"allocator/exchange/recovery.go", `if !r.bucket.Recovered && !idle && !r.used {`, `if !r.bucket.Recovered && !idle && r.used {`},
		},
		Breaks: "ceiling: a label above L", Under: "FLUSHALL; windows up to a minute",
		Says: "it was lent of",
		Test: Test{"./allocator/exchange", "TestAUsedBucketStaysClosed"},
	},
	{
		Name: "used-before-is-not", Hole: "closed bucket that a node used",
		Rule: "what was used under an earlier generation was used before the loss",
		Edits: []Edit{
			{"region/rights/lastseen.go", `return was && (m.generation < generation || m.known > 0)`, `return was && m.known > 0`},
		},
		Breaks: "ceiling: a label above L", Under: "FLUSHALL; windows up to a minute",
		Says: "used before, asked for since and never",
		Test: Test{"./region/rights", "TestUsedBeforeAGeneration"},
	},
	{
		Name: "full-memory-drops-use", Hole: "memory of a node is full",
		Rule: "use is forgotten only once the journal has it",
		Edits: []Edit{
			{"region/rights/uses.go", `one.recent || moved {`, `one.recent || moved && !moved {`},
		},
		Breaks: "ceiling: a label above L", Under: "more buckets than are remembered, then FLUSHALL",
		Says: "nothing may be forgotten before it is written",
		Test: Test{"./region/rights", "TestUseIsLeftToTheJournal"},
	},
	{
		Name: "full-memory-vouches", Hole: "memory of a node is full",
		Rule: "a node that had no room to note that it used a bucket does not say of any that it did not",
		Edits: []Edit{
			{"region/rights/lastseen.go", `raise(&s.since, int64(now))`, `raise(&s.since, 0)`},
		},
		Breaks: "ceiling: a label above L", Under: "more buckets than are remembered, then FLUSHALL",
		Says: "buckets remembered of at most",
		Test: Test{"./region/rights", "TestWhoHasNoRoomVouchesForNothing"},
	},
	{
		Name: "late-reply-overwrites-use", Hole: "use that a node has not told of",
		Rule: "of what the store answers, a node remembers the use of the latest time, whichever comes last",
		Edits: []Edit{{"region/rights/uses.go", `	case use.At < one.use.At:
`, `	case use.At < 0:
`}},
		Breaks: "ceiling: less is restored than was used", Under: "two answers that arrive in the wrong order, then FLUSHALL",
		Says: "an answer that comes late",
		Test: Test{"./region/rights", "TestSeenKeepsTheLatest"},
	},
}
