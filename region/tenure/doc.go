// Package tenure holds on what terms a node may use its region's store: under which generation of the store, and under which
// limits document.
//
//   - [Tenure.Open] opens the store when the node starts. Every node of a region does; the first one after a loss begins a new
//     generation, and the others join it (open.go).
//   - [Tenure.Watch] opens the store again when it answers that it is not this node's any more: it came back empty, another
//     node began a generation, or a document of a higher version is in force there.
//   - [Tenure.Adopt] puts another document in force (adopt.go).
//   - [Tenure.EndGeneration] begins a generation for the sake of one bucket that was deleted from a store which lost nothing
//     else.
//
// Whoever else works with the store learns of every change through [Config.Changed], and may do what must not overlap with a
// change through [Tenure.During].
//
// Beside that the package keeps what the store's word is worth: the latest time it has shown, which the journal knows before
// the store comes to it (storetime.go); since when this node's journal is whole (journal.go); and what the store's servers
// refuse to do (refusals.go).
package tenure
