package mutants

var loss = []Mutant{
	{
		Name: "token-unchecked", Hole: "FLUSHALL with scripts kept",
		Rule: "a script that finds no token, or another generation's, changes nothing",
		Edits: []Edit{
			{"algorithms/twin.go",
				`case w.Generation == 0 || w.Generation != g.Generation || w.Epoch != g.Epoch ||`,
				`case w.Epoch != "" && w.Epoch != g.Epoch ||`},
			{"algorithms/twin.go", `max(w.answered[g.Node], w.begun) < g.Seen:`, `false:`},
		},
		Breaks: "ceiling: a label above L", Under: "FLUSHALL; two nodes in a region",
		Flags:  []string{"--limits", "1", "--faults", "flush", "--nodes", "2"},
		Within: 30,
	},
	{
		Name: "empty-store-is-new", Hole: "FLUSHALL with scripts kept",
		Rule: "an empty store of a region that has served is a loss",
		Edits: []Edit{{"region/store/open.go",
			`return o.LastGeneration > 0 || !o.Bootstrap || all[0].Generation != 0`,
			`return o.LastGeneration > 0 && !o.Bootstrap && all[0].Generation != 0`}},
		Breaks: "ceiling: a label above L", Under: "FLUSHALL",
		Within: 300,
	},
	{
		Name: "loss-closes-one-cell", Hole: "FLUSHALL with scripts kept",
		Rule: "a loss closes the cell it falls into and the next, of which rights may be promised",
		Edits: []Edit{{"algorithms/ledger.go",
			`return h.Weighs(h.CellAt(h.lostAt) + 1)`,
			`return h.Weighs(h.CellAt(h.lostAt))`}},
		Breaks: "conservation: sum of S above L", Under: "FLUSHALL just before a cell's end",
		Within: 500,
	},
	{
		Name: "loss-closes-nothing", Hole: "FLUSHALL with scripts kept",
		Rule: "what a lost cell had promised or spent counts as promised and spent",
		Edits: []Edit{{"algorithms/ledger.go",
			`if h.lostAt == 0 {
		return 0`,
			`if h.lostAt == 0 || !h.Recovered {
		return 0`}},
		Breaks: "ceiling: a label above L", Under: "FLUSHALL",
		Within: 300,
	},
	{
		Name: "use-is-not-restored", Hole: "FLUSHALL with scripts kept",
		Rule:   "used is restored to the most that checkpoints and live nodes remember",
		Edits:  []Edit{{"allocator/exchange/recovery.go", `r.use = newer(r.use, t.Use)`, `r.use = algorithms.Use{}`}},
		Breaks: "ceiling: more above L than the printed bound of a lost store", Under: "FLUSHALL; windows longer than a minute",
		Within: 1000,
	},
	{
		Name: "another-servers-data", Hole: "stale primary promoted again",
		Rule: "a store on another server than it was opened on, by its master_replid, is opened anew as lost",
		Edits: []Edit{{"region/store/open.go",
			`l.Answered < l.seen || l.Replid != l.server
}`,
			`l.Answered < l.seen
}`}},
		Breaks: "ceiling: more above L than the printed bound of a stale replica", Under: "failover to a lagging replica",
		Test: Test{"./region/store", "TestBeatOfOtherData"},
	},
	{
		Name: "older-generation-taken", Hole: "stale primary promoted again",
		Rule: "a store of a lower generation than this node remembers is an older copy",
		Edits: []Edit{{"region/store/open.go",
			`return l.Generation < known || known > 0`,
			`return known > 0`}},
		Breaks: "ceiling and order: the ledger of an old copy stands", Under: "failover back to a server of an earlier generation",
		Test: Test{"./region/store", "TestOpenHiddenLoss"},
	},
	{
		Name: "stale-copy-keeps-what-it-returned", Hole: "stale primary promoted again",
		Rule: "of a peer of which nothing is known, what an old copy holds as borrowed may have been given back",
		Edits: []Edit{{"algorithms/twin_recovery.go", `row.Borrowed = row.Returned
`, `row.Borrowed = max(row.Borrowed, row.Returned)
`}},
		Breaks: "conservation: returned at the lender above returned at the borrower", Under: "a lagging replica promoted, the lender away",
		Test: Test{"./algorithms", "TestAnOldCopyBorrowsNothingOfAnUnknownPeer"},
	},
	{
		Name: "deleted-key-is-new", Hole: "one key deleted",
		Rule:   "a bucket that is not there before the time until which a node knows it to be is lost",
		Edits:  []Edit{{"algorithms/twin.go", `if h.stored || known <= now {`, `if h.stored || known <= max(known, now) {`}},
		Breaks: "ceiling: a label above L", Under: "DEL of a bucket",
		Within: 500,
	},
	{
		Name: "deleted-key-keeps-generation", Hole: "one key deleted",
		Rule: "for a deleted key, too, a generation is begun: rows of the one before may be under way",
		Edits: []Edit{{"region/tenure/open.go",
			`return lostAt > t.config.Store.Begun(`,
			`return lostAt < 0 && lostAt > t.config.Store.Begun(`}},
		Breaks: "conservation: credited above debited", Under: "DEL of a bucket while a row is in flight",
		Test: Test{"./region", "TestADeletedBucket"},
	},
	{
		Name: "refund-of-another-generation", Hole: "refund replayed after a loss",
		Rule: "a receipt of another generation is refused",
		Edits: []Edit{{"region/admit/receipt.go",
			`case secret == "" || r.GetGeneration() != l.store.Generation():`,
			`case secret == "":`},
			{"region/admit/receipt.go",
				`case !hmac.Equal(sealed[:sha256.Size], seal(secret, body)):`,
				`case !hmac.Equal(sealed[:sha256.Size], seal(secret, body)) && r.GetGeneration() == l.store.Generation():`}},
		Breaks: "ceiling: a label above L", Under: "FLUSHALL, then receipts of before",
		Flags:  []string{"--limits", "1", "--algorithm", "fixed_window", "--window", "10s", "--faults", "flush"},
		Within: 500,
	},
	{
		Name: "refund-of-a-finished-cell", Hole: "refund replayed after a loss",
		Rule: "a refund counts only in the cell that was charged",
		Edits: []Edit{{"algorithms/fixed_window.go",
			`if cell != w.cell {
		return 0, NoLongerWeighs`,
			`if cell < 0 {
		return 0, NoLongerWeighs`}},
		Breaks: "ceiling: a label above L", Under: "receipts refunded in a later cell",
		Within: 500,
	},
	{
		Name: "refunds-twice", Hole: "refund replayed after a loss",
		Rule: "a receipt is refunded once",
		Edits: []Edit{{"algorithms/twin.go",
			`if before, ok := w.refunded[c.Receipt]; ok && c.Receipt != "" {`,
			`if before, ok := w.refunded[c.Receipt]; ok && c.Receipt == "" {`}},
		Breaks: "ceiling: a label above L", Under: "receipts refunded again",
		Within: 300,
	},
}
