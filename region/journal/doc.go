// Package journal is a node's durable memory: what this region said to its
// peers (Row), the store generation it last opened, the peers it knows and the
// policy document in force, in one bbolt file.
//
// A row is recorded before the reply that announces it leaves the node. A
// region whose Redis lost everything reads the rows back and so knows what it
// had lent and returned; without them it would have to count every row it
// cannot know as fully lent.
//
// What is promised:
//
//   - When Record returns nil, its rows are on disk (fdatasync) at those values
//     or higher, and stay there until Prune finds them out of date.
//   - The rows of one Record call become durable together or not at all.
//   - Rows only rise: recording is a merge by maximum, in any order, any number
//     of times, with one result.
//   - A handle whose commit failed is never trusted again. Every later write
//     gives the first error, until the file is opened anew.
//   - Open either returns a journal whose every record was checked, or an error
//     that says what is wrong and what to do. It does not panic on a damaged
//     file, and it does not fall back to an older state of it.
//
// What is not:
//
//   - An error from Record does not mean that the rows are absent, only that
//     nobody may rely on them being present.
//   - An older copy of the file put back in its place is a valid journal. Only
//     Incarnation and Sequence, compared with what others remember of them,
//     tell.
//   - Damage done while the file is open is found at the next Open, or when a
//     damaged record is read.
//
// Journal is the file, Memory a model of it for simulators; one conformance
// test holds both to the same behaviour. Start reading at Journal.Record, then
// writer.go for the group commit and walk.go for the check of the file.
package journal
