//go:build race

package lab

// OnTwins reports whether tests of nodes use twins as their stores: see ontwins.go.
const OnTwins = true
