// Package envoys tells Envoys what they may admit by themselves. It drives the machine of
// allocator/assign: what Envoys report goes in, and its effects are carried out in the region's
// store and on the Envoys' streams.
//
//	assigner.go  steps the machine, and carries out its effects
//	stream.go    one Envoy's stream: which limits its bucket ids meet, and what waits to be sent
//	newcomers.go the turns of new bucket ids
//	mover.go     how much of the store's time assignments have
//	metrics.go   what is counted
//
// All of an Envoy's identity is its stream. What it may say of itself in a report counts for
// nothing.
package envoys
