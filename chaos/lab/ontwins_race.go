//go:build race

package lab

// OnTwins says that tests of nodes have twins for their stores: see ontwins.go.
const OnTwins = true
