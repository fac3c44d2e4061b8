package process

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// halves are the machine's processors in two halves: one for nodes and stores, and one for their
// load generators.
type halves struct{ served, loading unix.CPUSet }

// cores divides the machine's processors, so that load generators do not take processor time from
// nodes. The division ends with the test.
func cores(t testing.TB) halves {
	t.Helper()
	var all unix.CPUSet
	suite.Must(t, unix.SchedGetaffinity(0, &all))
	var h halves
	if all.Count() < 2 {
		fmt.Println("one processor: the node shares it with its load")
		return halves{served: all, loading: all}
	}
	left := all.Count() / 2
	for cpu := 0; left > 0 || h.served.Count() < all.Count()-all.Count()/2; cpu++ {
		switch {
		case !all.IsSet(cpu):
		case left > 0:
			h.loading.Set(cpu)
			left--
		default:
			h.served.Set(cpu)
		}
	}
	t.Cleanup(func() { use(t, all) })
	fmt.Printf("processors: %d for the node and its Redis, %d for their load\n", h.served.Count(),
		h.loading.Count())
	return h
}

// use restricts this process, and those it starts from now on, to some processors.
func use(t testing.TB, cpus unix.CPUSet) {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	suite.Must(t, err)
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err == nil {
			err = unix.SchedSetaffinity(tid, &cpus)
		}
		if err != nil && err != unix.ESRCH { // the thread has ended since
			t.Fatal(err)
		}
	}
}
