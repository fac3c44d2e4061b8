package mutants

var documents = []Mutant{
	{
		Name: "epoch-is-the-version", Hole: "one version with two contents",
		Rule: "an epoch is the version and a digest of what the document says",
		Edits: []Edit{{"policy/epoch.go",
			`return fmt.Sprintf("%d-%x", e.Version, e.Digest[:6])`,
			`return fmt.Sprintf("%d-%x", e.Version, [6]byte{})`}},
		Breaks: "conservation: sum of S above L of either document", Under: "two documents of one version",
		Says: "epoch .* want",
		Test: Test{"./policy", "TestEpochIsPinned"},
	},
	{
		Name: "trades-under-two-documents", Hole: "one version with two contents",
		Rule: "regions trade only what they give each other the same of",
		Edits: []Edit{
			{"allocator/exchange/lender.go", `case a.Agreed != b.Agreed:`, `case b.Epoch == "":`},
			{"allocator/exchange/call.go", `case a.Agreed != v.Agreed:`, `case v.Epoch == "":`},
		},
		Breaks: "conservation: lent above the lending limit of either document", Under: "documents changed while regions trade",
		Says: "other terms: ",
		Test: Test{"./allocator/exchange", "TestAsksThatAreRefused"},
	},
	{
		Name: "goes-back-to-an-old-document", Hole: "restarted node on an old file",
		Rule: "a node starts with no document older than it worked under, and a store takes none",
		Edits: []Edit{
			{"region/tenure/open.go", `	return barrier.Union(known...)`, `	return barrier.Of(c.Policy), nil`},
			{"region/store/adopt.go", `case o.Guess || without(algorithms.MergeEpochs(a.Epoch, epoch), o.Folded) != epoch:`, `case o.Guess:`},
		},
		Breaks: "order: epochs never decrease", Under: "a node started again with the document before the last",
		Says:   "documents: ",
		Within: 300,
	},
	{
		Name: "forgets-that-it-is-unsure", Hole: "one version with two contents",
		Rule: "a region that lost its documents serves nothing until the others told theirs, through another loss and restart",
		Edits: []Edit{{"region/tenure/unsure.go",
			`	if unsure || len(k.unsure) > 0 {
`, `	if !unsure {
		k.unsure = nil
	} else {
`}},
		Breaks: "conservation: sum of S above L of either document", Under: "all documents lost, then the store again and a restart, peers away",
		Says: "another loss: unsure false",
		Test: Test{"./region/tenure", "TestANodeThatKnowsNothingServesNothing"},
	},
	{
		Name: "serves-at-once-by-a-newer-file", Hole: "one version with two contents",
		Rule: "a region that began with a document newer than those of others waits until nothing weighs of these",
		Edits: []Edit{{"region/tenure/unsure.go",
			`k.after, k.newer = k.heard.By(k.region, a), false`, `k.newer = false`}},
		Breaks: "conservation: sum of S above L of either document", Under: "Redis and all journals lost, a newer file, peers under the older one",
		Says: "eu has both",
		Test: Test{"./region/tenure", "TestANewerFileInARegionThatKnowsNothing"},
	},
	{
		Name: "key-without-algorithm-and-window", Hole: "changed window or algorithm under the same name",
		Rule: "algorithm and window are part of a bucket's key",
		Edits: []Edit{{"region/rules/rules.go",
			`return store.BucketKey(r.Shards.Of(policy.BucketID(id).Entity()), id)`,
			`ref, _ := policy.ParseBucketID(policy.BucketID(id))
	ref.Window, ref.Algorithm = 1_000_000_000, algorithms.FixedWindow
	return store.BucketKey(r.Shards.Of(policy.BucketID(id).Entity()), string(ref.ID()))`}},
		Breaks: "local: use and rows of one algorithm read as another's", Under: "algorithm or window of a limit changed",
		Says: "works on ",
		Test: Test{"./region/rules", "TestAlgorithmAndWindowArePartOfAKey"},
	},
	{
		Name: "splits-over-who-is-alive", Hole: "weights summed over who is alive",
		Rule: "entitlements come from the document, never from who answers",
		Edits: []Edit{{"allocator/exchange/machine.go",
			`if v.Epoch == m.epoch {`,
			`alive := quantity.Units(1)
		for _, p := range m.peers {
			if !p.degraded(now) {
				alive++
			}
		}
		v.Entitlements[m.region] = v.Limit / alive
		if v.Epoch == m.epoch {`}},
		Breaks: "conservation: sum of S above L; fallback", Under: "a partition",
		Says:   "conservation: ",
		Within: 300,
	}, {
		Name: "documents-are-saved-when-the-store-has-them", Hole: "restarted node on an old file",
		Rule: "the journal has the texts of documents before the store is opened under them",
		Edits: []Edit{{"region/tenure/open.go", `		if !t.guess {
			t.save(a) // should the answer be lost, nobody else may have their texts
		}
`, ``}},
		Breaks: "liveness: a node that never starts again", Under: "an opening whose answer is lost, and a newer file",
		Says: "convergence: ",
		Test: Test{"./chaos/sim", "TestPlansThatOnceBroke"},
	},
}
