// Package tenure holds the terms on which a node may use its region's store: the generation of the
// store and the limits document in force.
//
//   - [Tenure.Open] opens the store when the node starts. Every node of a region does so. The first
//     one after a loss begins a new generation, and the others join it (open.go).
//   - [Tenure.Watch] opens the store again when the store answers that this node may no longer use
//     it: the store came back empty, another node began a generation, or a document of a higher
//     version is in force there.
//   - [Tenure.Adopt] puts another document in force (adopt.go).
//   - [Tenure.EndGeneration] begins a generation because one bucket was deleted from a store that
//     lost nothing else.
//
// Other packages that work with the store learn of every change through [Config.Changed]. Work that
// must not overlap with a change runs in [Tenure.During].
//
// The package also keeps what the node must know about the store: the latest time that the store
// has shown, which the journal knows before the store gets there (storetime.go), the time since
// when this node's journal is whole (journal.go), and the calls that the store's servers refuse
// (refusals.go).
package tenure
