package mutants

// The mutants of what is asked of nodes that come and go, and of an operator's word about those that are
// gone.
var comings = []Mutant{
	{
		Name: "word-is-heard-by-one-node", Hole: "use that a node has not told of",
		Rule: "a node that waits looks whether its store remembers an operator's word",
		Edits: []Edit{
			{"region/tenure/waive.go", `err == nil && bad == nil {`, `err == nil && bad == nil && until < 0 {`},
		},
		Breaks: "liveness: a key answers recovering", Under: "a node gone for good, FLUSHALL, the word, and its node starts anew",
		Says: "liveness: ",
		Test: Test{"./chaos/sim", "TestTheOperatorsWord"},
	},
	{
		Name: "word-is-taken-for-granted", Hole: "use that a node has not told of",
		Rule: "who has not told is waited for until an operator says that nobody need be",
		Edits: []Edit{
			{"allocator/exchange/recovery.go", `if r.lostAt <= m.waived && r.bucket.Recovered {`, `if r.bucket.Recovered {`},
		},
		Breaks: "ceiling: a label above L", Under: "a node gone for good with its copies, then FLUSHALL",
		Says: "ceiling: ",
		Test: Test{"./chaos/sim", "TestTheOperatorsWord"},
	},
	{
		Name: "word-is-for-ever", Hole: "use that a node has not told of",
		Rule: "an operator's word is about the losses before it",
		Edits: []Edit{
			{"allocator/exchange/recovery.go", `if r.lostAt <= m.waived && r.bucket.Recovered {`, `if m.waived > 0 && r.bucket.Recovered {`},
		},
		Breaks: "ceiling: a label above L", Under: "the word, and then a loss of another node and the store",
		Says: "ceiling: ",
		Test: Test{"./chaos/sim", "TestTheOperatorsWord"},
	},
	{
		Name: "added-node-vouches-for-nothing", Hole: "use that a node has not told of",
		Rule: "a node of which the store remembers nothing used nothing since the store last lost data",
		Edits: []Edit{
			{"region/tenure/journal.go", `case fresh && before == "":`, `case fresh && before == "" && t.config.Bootstrap:`},
		},
		Breaks: "liveness: a key answers recovering", Under: "a node added just before FLUSHALL",
		Says: "liveness: ",
		Test: Test{"./chaos/sim", "TestANodeIsAdded"},
	},
	{
		Name: "added-node-is-not-waited-for", Hole: "use that a node has not told of",
		Rule: "of more nodes than the setting says, each that the store answered is waited for",
		Edits: []Edit{
			{"allocator/exchange/named.go", `n.first <= lostAt.Add(namedLag) && !slices`, `n.first < 0 && !slices`},
		},
		Breaks: "ceiling: a label above L", Under: "a node added and not counted, used alone, away; then FLUSHALL",
		Says: "ceiling: ",
		Test: Test{"./chaos/sim", "TestANodeIsAdded"},
	},
	{
		Name: "old-copy-tells-all", Hole: "use that a node has not told of",
		Rule: "a copy tells for a node only if it is as late as the store's last answer to it",
		Edits: []Edit{
			{"allocator/exchange/copied.go", `if c.Until.Add(CopyLag) >= max(m.named[node].answered(r), c.Answered) {`, `if c.Until > 0 {`},
		},
		Breaks: "ceiling: a label above L", Under: "a node cut off from its mates, gone for good; then FLUSHALL",
		Says: "ceiling: ",
		Test: Test{"./chaos/sim", "TestTheOperatorsWord"},
	},
	{
		Name: "chunk-is-all-that-is-free", Hole: twice,
		Rule: "a node holds a fourth of what is free at most",
		Edits: []Edit{
			{"region/held/chunk.go", `nodeParts = 4`, `nodeParts = 1`},
		},
		Breaks: "ceiling: a label above L", Under: "a machine that stands still with its clocks",
		Says: "ceiling: ",
		Test: Test{"./chaos/sim", "TestWhatIsHeldDoesNotAddUp"},
	},
	{
		Name: "chunks-add-up", Hole: twice,
		Rule: "what a node holds counts when it asks for more",
		Edits: []Edit{
			{"region/held/chunk.go", `Largest(m.free, nodes)) - m.Holds(now)`, `Largest(m.free, nodes))`},
		},
		Breaks: "ceiling: a label above L", Under: "requests for more than is held, and a machine that stands still with its clocks",
		Says: "ceiling: ",
		Test: Test{"./chaos/sim", "TestWhatIsHeldDoesNotAddUp"},
	},
	{
		Name: "restored-bucket-is-deleted-for-good", Hole: "one key deleted",
		Rule: "a bucket that is deleted while its recovery goes on is restored again",
		Edits: []Edit{
			{"allocator/exchange/recovery_again.go", `r.lostAt != l.At || at <= r.restoredAt {`, `r.lostAt != l.At || at > 0 {`},
		},
		Breaks: "liveness: requests wait in vain", Under: "a node gone for good, FLUSHALL, then DEL",
		Says: "not restored again",
		Test: Test{"./allocator/exchange", "TestABucketIsRestoredAndDeleted"},
	},
}
