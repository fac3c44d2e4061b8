package sim

// The rows of the fault matrix that this simulator can fire. The numbers are those of the matrix,
// which has 35 rows. The other rows are covered by tests with real processes (chaos/real/process) or by
// others.
const (
	rowFullSplit    = 1
	rowOneWayCut    = 2
	rowPartialCut   = 3
	rowHintsCut     = 4
	rowLoss         = 5
	rowLatency      = 6
	rowLenderDies   = 12
	rowBorrowerDies = 13
	rowNodeRestarts = 14
	rowJournalFails = 16
	rowJournalLost  = 18
	rowStoreLost    = 20
	rowStaleCopy    = 21
	rowStoreDown    = 23
	rowReplyLost    = 24
	rowPause        = 26
	rowClocks       = 27
	rowDocument     = 29
	rowVersions     = 30
	rowLies         = 31
	rowLeave        = 33
)

// RowNames describe these rows.
var RowNames = map[int]string{
	rowFullSplit:    "full split",
	rowOneWayCut:    "one-way cut",
	rowPartialCut:   "partial cut",
	rowHintsCut:     "hints alone cut",
	rowLoss:         "loss, repetition, lateness",
	rowLatency:      "latency",
	rowLenderDies:   "lender dies at an act of the protocol",
	rowBorrowerDies: "borrower dies at an act of the protocol",
	rowNodeRestarts: "node dies and starts again",
	rowJournalFails: "journal fails",
	rowJournalLost:  "journal lost or old",
	rowStoreLost:    "store empty, bucket deleted",
	rowStaleCopy:    "stale copy promoted",
	rowStoreDown:    "store does not answer, local part",
	rowReplyLost:    "reply of the store lost",
	rowPause:        "node stands still",
	rowClocks:       "clocks step",
	rowDocument:     "document changes, old file",
	rowVersions:     "fields of a later version",
	rowLies:         "untrue hints, forged messages",
	rowLeave:        "node ends in order",
}
