// Package tally counts what became of the requests on buckets, for operators.
//
// [Count] is what a bucket in a node's memory carries: units admitted and denied, and the last
// outcome. It takes no lock. A node holds few buckets in memory, so when one is displaced, its
// count goes into a [Sketch], which finds the buckets with the most units among any number of them,
// in a fixed amount of memory.
//
// Nothing here decides anything: a request is never denied because of what is counted here.
package tally
