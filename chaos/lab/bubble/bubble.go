// Package bubble runs tests in virtual time.
package bubble

import (
	"runtime"
	"testing"
	"testing/synctest"
)

// Test is synctest.Test on one processor: f runs in a bubble of virtual time, and Test returns when
// every goroutine of the bubble has ended. On several processors the race detector of Go 1.26 may
// crash: timers of one bubble that fire at the same moment share a context that its runtime takes
// for one thread's (https://go.dev/issue/78156). One processor suffices to find races, because the
// detector looks for accesses without an order, not for those that happen to coincide.
//
// The number of processors is the whole process's, so a test that calls Test must not be parallel.
func Test(t *testing.T, f func(*testing.T)) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, f)
}
