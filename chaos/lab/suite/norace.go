//go:build !race

package suite

// Race reports whether the race detector runs.
const Race = false
