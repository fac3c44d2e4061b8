// Package journal is a node's durable memory: what this region said to its
// peers (Row), what its store was seen to have counted (Checkpoint), the store
// generation it last opened, since when its rows are whole, the peers it knows
// and the policy document in force, in one bbolt file.
//
// A row is recorded before the reply that announces it leaves the node. A
// region whose Redis lost everything reads the rows back (RowsOf) and so knows
// what it had lent and returned; without them it would have to count every row
// it cannot know as fully lent. From the checkpoints it knows what it had
// admitted of long windows, up to the last of them; what was admitted after
// that one is lost.
//
// What is promised:
//
//   - When Record returns nil, its rows are on disk (fdatasync) at those values
//     or higher, and stay there until Prune finds them out of date.
//   - When Checkpoint returns nil, the same holds of its checkpoints, at those
//     values or newer ones.
//   - The rows of one Record call become durable together or not at all; so do
//     the checkpoints of one Checkpoint call.
//   - Rows only rise, checkpoints only get newer: Record merges by maximum,
//     Checkpoint by generation and store time, in any order, any number of
//     times, with one result.
//   - Rows, RowsOf and Checkpoints show what is durable, and nothing that waits
//     for its commit. RowsOf and Checkpoints cost what they return and what
//     they look up, however much the journal holds.
//   - WholeSince changes by SetWholeSince alone: no opening, commit or pruning
//     touches it, and a journal just made is not known to be whole.
//   - A handle whose commit failed is never trusted again. Every later write
//     gives the first error, until the file is opened anew.
//   - Open either returns a journal whose every record was checked, or an error
//     that says what is wrong and what to do. It does not panic on a damaged
//     file, and it does not fall back to an older state of it.
//
// What is not:
//
//   - An error from Record or Checkpoint does not mean that nothing was
//     written, only that nobody may rely on it.
//   - A checkpoint is what one node saw, not the most that was ever used: a
//     newer one with less replaces it, because refunds and a reset lower use.
//   - An older copy of the file put back in its place is a valid journal, with
//     the WholeSince it had then. Only Incarnation and Sequence, compared with
//     what others remember of them, tell.
//   - Damage done while the file is open is found at the next Open, or when a
//     damaged record is read.
//
// Journal is the file, Memory a model of it for simulators; one conformance
// test holds both to the same behaviour. Start reading at Journal.Record, then
// writer.go for the group commit, read.go for what is asked of the file and
// walk.go for its check.
package journal
