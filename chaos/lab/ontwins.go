//go:build !race

package lab

// OnTwins reports whether tests of nodes use twins as their stores. Here they use embedded Redis
// servers, which run the scripts themselves. Under the race detector these servers are so slow that
// the tests use twins.
const OnTwins = false
