// Package bubble runs tests in virtual time.
package bubble

import (
	"runtime"
	"testing"
	"testing/synctest"
)

// Test is synctest.Test on one processor: f runs in a bubble of virtual time, and Test returns when every goroutine of it has
// ended. Where testing/synctest runs on more, the race detector of Go 1.26 may crash: timers of one bubble that fire at the same
// moment share a context which its runtime takes for one thread's (https://go.dev/issue/78156). Races are found on one processor
// as well: the detector looks for accesses that nothing orders, not for those that happen to meet.
//
// The processors are the whole process's, so a test that calls Test must not be parallel.
func Test(t *testing.T, f func(*testing.T)) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, f)
}
