// Package journal is a node's durable memory. It keeps:
//
//   - what this region said to its peers (Row),
//   - what the store was seen to have counted (Checkpoint),
//   - the store generation last opened, and since when the rows are complete,
//   - the peers the node knows, the nodes that used its region's store, and the limits documents that
//     are open.
//
// It is a write-ahead log: a node records a row before the reply that announces it leaves. A region
// whose Redis lost everything reads the rows back (RowsOf), and so knows what it had lent and
// returned. Without them it would have to count everything that it may lend as lent. From the
// checkpoints it knows what it had admitted of long windows, up to the last checkpoint. What it
// admitted later is lost.
//
// # What is promised
//
//   - When Record or Checkpoint returns nil, its records are durable, at those values or newer
//     ones, until Prune finds them out of date. The records of one call become durable together or
//     not at all.
//   - Rows only rise and checkpoints only get newer. Calls may come in any order and any number
//     of times; the result is the same.
//   - Rows, RowsOf and Checkpoints show what is durable, and nothing that waits for its commit.
//     The cost of RowsOf and Checkpoints depends on what they return and look up, not on the size
//     of the journal.
//   - Only SetWholeSince changes WholeSince.
//   - A journal whose commit failed is never trusted again: every later write gives the first
//     error.
//   - Opening checks every record. It does not fall back to an older state of a damaged file.
//
// # What is not promised
//
//   - An error from Record or Checkpoint does not mean that nothing was written.
//   - A checkpoint is not the most that was ever used: units given back and a reset lower use.
//   - An older copy of the file is a valid journal. Only Incarnation and Sequence show it,
//     compared with what others remember of them.
//
// # Where to read
//
// The journal is written over the four calls of package disk. Start at Journal.Record, then read
// writer.go (group commit), tx.go and prune.go (what a commit changes), read.go and encode.go. A
// file of the schema before is brought to the present one by migrate.go. The disk in production is a
// bbolt file: file.go, create.go, and walk.go, which checks its pages. The disk in simulations is
// chaos/lab.Disk. One conformance test runs the journal on both.
package journal
