// Package envoys tells Envoys what they may admit by themselves. It drives the machine of package
// allocator/assign: Envoys' reports go in, and the machine's effects are carried out in the
// region's store and on the Envoys' streams.
//
//	assigner.go   steps the machine, and carries out its effects
//	stream.go     one Envoy's stream: which limits its bucket ids meet, and what waits to be sent
//	newcomers.go  the turns of new bucket ids
//	mover.go      which part of the store's time assignments may take
//	metrics.go    what is counted
//
// An Envoy is known by its stream alone. What it says of itself in a report counts for nothing.
package envoys
