// Package tuning sets what the Go runtime does in a node's process, and in one that is measured beside it.
package tuning

import (
	"os"
	"runtime"
)

// ballast is how many bytes of memory a node has that are never used, so the system never provides
// them. Without them the collector would run every few
// milliseconds in a small node that is flooded, and take time from its requests.
const ballast = 32 << 20

// Tune sets what the runtime does in the process of a node, until release is called.
//
// Go code runs in two threads at a time, unless GOMAXPROCS is set. If a process may use one processor, the
// runtime uses one thread, and then a busy node reads what has arrived only every 10 ms.
//
// The garbage collector takes ballast for live memory.
func Tune() (release func()) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
	}
	unused := make([]byte, ballast)
	untouched(unused)
	return func() { runtime.KeepAlive(unused) }
}
