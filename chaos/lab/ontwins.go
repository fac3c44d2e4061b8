//go:build !race

package lab

// OnTwins says that tests of nodes have twins for their stores. Here they have embedded Redis servers, which run the
// scripts themselves, and so slowly under the race detector that it looks at the nodes with twins.
const OnTwins = false
