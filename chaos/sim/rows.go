package sim

// RowNames are the rows of the fault matrix that this simulator can have fire, by number.
var RowNames = map[int]string{
	1: "full split", 2: "one-way cut", 3: "partial cut", 4: "hints alone cut", 5: "loss, repetition, lateness", 6: "latency",
	12: "lender dies at an act of the protocol", 13: "borrower dies at an act of the protocol", 14: "node dies and starts again", 16: "journal fails", 18: "journal lost or old",
	20: "store empty, bucket deleted", 21: "stale copy promoted", 23: "store does not answer, local part", 24: "reply of the store lost",
	26: "node stands still", 27: "clocks step", 29: "document changes, old file", 30: "fields of a later version", 31: "untrue hints, forged messages",
	33: "node ends in order",
}
