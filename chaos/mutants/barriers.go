package mutants

const documentsDiffer = "regions under different documents"

// searched is the exhaustive search of the barrier.
var searched = Test{"./policy/barrier", "TestEveryOrderKeepsTheCeiling"}

var barriers = []Mutant{
	{
		Name: "completes-on-its-own-acknowledgement", Hole: documentsDiffer,
		Rule: "a document counts alone when the others have acknowledged it",
		Edits: []Edit{{"policy/barrier/view.go",
			`at, known := v.Heard[region][d.Epoch()]`,
			`at, known := v.Heard[v.Region][d.Epoch()]`}},
		Breaks: "ceiling: the parts of two documents add up", Under: "a region that has not heard of the newer document",
		Says: "states the regions could use more than any",
		Test: searched,
	},
	{
		Name: "counts-an-acknowledgement-of-a-later-document", Hole: "acknowledgement of a later epoch taken for an earlier",
		Rule: "an acknowledgement is for exactly one document",
		Edits: []Edit{{"policy/barrier/view.go",
			`at, known := v.Heard[region][d.Epoch()]`,
			`at, known := v.Heard[region][d.Epoch()]
	for e, t := range v.Heard[region] {
		if e.Version > d.Version {
			at, known = t, true
		}
	}`}},
		Breaks: "ceiling: a region that skipped a version is not bound by it", Under: "a version that one region never saw",
		Says: "Binding:",
		Test: Test{"./policy/barrier", "TestAnAcknowledgementIsForOneDocument"},
	},
	{
		Name: "does-not-wait-for-those-who-shrink", Hole: documentsDiffer,
		Rule: "every region whose part shrinks must have acknowledged",
		Edits: []Edit{{"policy/barrier/view.go",
			`			waiting = append(waiting, region)
`,
			`			_ = region
`}},
		Breaks: "ceiling: the parts of two documents add up", Under: "a region that has not heard of the newer document",
		Says: "states the regions could use more than any",
		Test: searched,
	},
	{
		Name: "needs-no-majority", Hole: documentsDiffer,
		Rule: "a document counts alone when a majority has it, so that of two that do not know of each other one does",
		Edits: []Edit{{"policy/barrier/view.go",
			`if 2*len(missing) >= len(of.Regions) {`,
			`if 2*len(missing) > 2*len(of.Regions) {`}},
		Breaks: "ceiling: two raises add up", Under: "two documents, each known to one region",
		Says: "states the regions could use more than any",
		Test: searched,
	},
	{
		Name: "in-force-at-the-acknowledgement", Hole: "barrier completing inside a cell",
		Rule: "the newer document counts alone when what the older one promised weighs no more",
		Edits: []Edit{{"policy/barrier/view.go",
			`return max(over(w.weighs, latest), latest.Add(w.settles)).Add(w.fill), nil`,
			`return latest.Add(0 * (w.fill + w.settles)), nil`}},
		Breaks: "ceiling: units used and lent under both documents in one cell", Under: "a share that moves within a cell",
		Says: "states the regions could use more than any",
		Test: searched,
	},
	{
		Name: "in-force-while-envoys-hold-more", Hole: documentsDiffer,
		Rule: "where Envoys may hold fewer tokens, the stores grow by them when they hold no more",
		Edits: []Edit{{"policy/barrier/view.go",
			`return max(over(w.weighs, latest), latest.Add(w.settles)).Add(w.fill), nil`,
			`return max(over(w.weighs, latest), latest.Add(0 * w.settles)).Add(w.fill), nil`}},
		Breaks: "ceiling: tokens of Envoys and of the store add up", Under: "a lower max_burst",
		Says: "a token less",
		Test: Test{"./policy/barrier", "TestWhatEnvoysHoldIsWaitedFor"},
	},
	{
		Name: "takes-from-envoys-without-waiting", Hole: documentsDiffer,
		Rule: "a region whose Envoys may hold fewer tokens must have acknowledged",
		Edits: []Edit{{"policy/barrier/shrink.go",
			` || a.lendable < b.lendable || a.envoys < b.envoys`,
			` || a.lendable < b.lendable`}},
		Breaks: "ceiling: tokens of Envoys and of the store add up", Under: "a lower max_burst",
		Says: "Envoys less",
		Test: Test{"./policy/barrier", "TestWhatEnvoysHoldIsWaitedFor"},
	},
	{
		Name: "in-force-from-the-next-cell", Hole: "barrier completing inside a cell",
		Rule: "rows of the next cell may have been lent before the acknowledgement",
		Edits: []Edit{{"policy/barrier/view.go",
			`return terms.Weighs(terms.CellAt(at) + 1)`,
			`return terms.Weighs(terms.CellAt(at))`}},
		Breaks: "conservation: shares of a cell add up to more than either limit", Under: "rights lent ahead, then a document",
		Says:  "ceiling: ",
		Flags: []string{"-documents"}, Within: 1000,
	},
	{
		Name: "takes-its-own-time-for-the-last", Hole: "barrier completing inside a cell",
		Rule: "the time that counts is that of the last acknowledgement",
		Edits: []Edit{{"policy/barrier/view.go",
			`latest = max(latest, at)`,
			`latest = v.Heard[v.Region][d.Epoch()] * min(at+1, 1)`}},
		Breaks: "ceiling: units used under both documents in one cell", Under: "a region that hears late of a document",
		Says: "states the regions could use more than any",
		Test: searched,
	},
	{
		Name: "the-newest-alone-while-open", Hole: documentsDiffer,
		Rule: "while several documents are open the least of what they give counts",
		Edits: []Edit{{"region/rules/split.go",
			`least = atMost(least, partsIn(more, hash))`,
			`least = partsIn(more, hash)`}},
		Breaks: "ceiling: the parts of two documents add up", Under: "a document that moves shares",
		Says:  "conservation: ",
		Flags: []string{"-documents"}, Within: 100,
	},
	{
		Name: "the-oldest-alone-while-open", Hole: documentsDiffer,
		Rule: "while several documents are open the least of what they give counts",
		Edits: []Edit{{"region/rules/split.go",
			`least = atMost(least, partsIn(more, hash))`,
			`least, _ = atMost(least, least), more`}},
		Breaks: "ceiling: who shrinks goes on with what it had", Under: "a document that moves shares",
		Says:  "conservation: ",
		Flags: []string{"-documents"}, Within: 200,
	},
	{
		Name: "restores-with-the-lesser-cap", Hole: documentsDiffer,
		Rule: "a store that lost its data counts as lent what any document that binds allowed to be lent",
		Edits: []Edit{{"region/rules/split.go",
			`parts.bucket.LentBefore = max(parts.bucket.LentBefore,`,
			`parts.bucket.LentBefore = min(parts.bucket.LentBefore,`}},
		Breaks: "conservation: what was lent under the older document is forgotten", Under: "a lower lending limit, then a loss",
		Says: "Lending:.* under",
		Test: Test{"./region/rules", "TestWhatMayHaveBeenLentUnderAnyDocument"},
	},
	{
		Name: "a-loss-forgets-the-newer-document", Hole: documentsDiffer,
		Rule: "after a loss at least the documents are open that were before",
		Edits: []Edit{{"region/tenure/open.go",
			`	return t.openUnder(ctx, t.agenda(), bootstrap)`,
			`	return t.openUnder(ctx, barrier.Of(t.agenda().Base()), bootstrap)`}},
		Breaks: "ceiling: a region that acknowledged goes back", Under: "a loss while documents are open",
		Says: "after a loss",
		Test: Test{"./region/tenure", "TestALossKeepsWhatIsOpen"},
	},
	{
		Name: "counts-what-it-does-not-know", Hole: documentsDiffer,
		Rule: "an acknowledgement counts when all documents of its region are known",
		Edits: []Edit{{"region/tenure/documents.go",
			`			known, k.wanted[one.Epoch] = false, region`,
			`			k.wanted[one.Epoch] = region`}},
		Breaks: "ceiling: a region works under a document between that gives it more", Under: "versions skipped",
		Says: "counted: ",
		Test: Test{"./region/tenure", "TestAnAcknowledgementWaitsForTheDocumentsBeside"},
	},
	{
		Name: "an-absent-region-keeps-its-part", Hole: documentsDiffer,
		Rule: "a region that is not in a document gets nothing by it",
		Edits: []Edit{{"region/rules/split.go",
			`		q := b[region]
`,
			`		q, has := b[region]
		if !has {
			q = p
		}
`}},
		Breaks: "ceiling: who left the document goes on", Under: "a document without a region",
		Says: "here is entitled to",
		Test: Test{"./region/rules", "TestARegionThatIsNotInADocumentGetsNothing"},
	},
	{
		Name: "charges-the-new-window-only", Hole: documentsDiffer,
		Rule: "a limit whose window changed is charged with the one that took its place until it weighs no more",
		Edits: []Edit{{"region/rules/found.go",
			`	if r.leftover != nil {`,
			`	if r.leftover == nil {`}},
		Breaks: "ceiling: the limit is had twice", Under: "a changed window",
		Says: "admitted, want",
		Test: Test{"./region", "TestAdoptChangesLimitsAtOnce"},
	},
	{
		Name: "a-file-replaces-what-stands", Hole: documentsDiffer,
		Rule: "a node that knows its file alone does not put it in the place of what stands in the store",
		Edits: []Edit{{"region/store/adopt.go",
			`case guess || algorithms.MergeEpochs`,
			`case guess && false || algorithms.MergeEpochs`}},
		Breaks: "ceiling: a document counts alone that nobody acknowledged", Under: "a new node with a newer file",
		Says: "open: .* want",
		Test: Test{"./region", "TestANewNodeJoinsWhatIsOpen"},
	},
}
