package baseline

import (
	"fmt"

	"github.com/quotad/quotad/chaos/workload"
)

// Network is what lies between the regions. No message is lost.
type Network struct {
	// OneWay is how long a message takes from one region to another, in µs, and
	// 0 on the diagonal.
	OneWay [][]int64
}

// Uniform is a network in which every message takes as long, in µs.
func Uniform(regions int, oneWay int64) Network {
	n := Network{OneWay: make([][]int64, regions)}
	for i := range n.OneWay {
		n.OneWay[i] = make([]int64, regions)
		for j := range n.OneWay[i] {
			if i != j {
				n.OneWay[i][j] = oneWay
			}
		}
	}
	return n
}

// RoundTrip is how long it takes from region i to j and back, in µs.
func (n Network) RoundTrip(i, j int) int64 { return n.OneWay[i][j] + n.OneWay[j][i] }

// farthest is the longest round trip of region i.
func (n Network) farthest(i int) int64 {
	var longest int64
	for j := range n.OneWay {
		longest = max(longest, n.RoundTrip(i, j))
	}
	return longest
}

// Validate says why the network does not fit so many regions, or nil.
func (n Network) Validate(regions int) error {
	if len(n.OneWay) != regions {
		return fmt.Errorf("baseline: a network of %d regions cannot carry a workload of %d: give one row for each", len(n.OneWay), regions)
	}
	for i, row := range n.OneWay {
		if len(row) != regions || row[i] != 0 {
			return fmt.Errorf("baseline: row %d of the network, %v, must have %d latencies, and 0 for itself", i, row, regions)
		}
		for j, t := range row {
			if t < 0 || t > workload.Second {
				return fmt.Errorf("baseline: a message from region %d to %d takes %d µs: give 0 to a second", i, j, t)
			}
		}
	}
	return nil
}

// Result is what a system did with a workload.
type Result struct {
	// Admitted says of each arrival, by its index, whether it was let through.
	Admitted []bool
	// Waited is for how long each arrival waited for another region, in µs. Nil
	// if none ever does.
	Waited []int64
	// Decided is when each arrival was decided, in µs since the start of the run;
	// it lies between its arrival and the end of its wait, and is what windows are
	// told apart by. Nil if all are decided as they arrive.
	Decided []int64
	// Shares is what each region might admit in a window, at least every 100 ms
	// and whenever it changed, by time. Nil for a system that has no shares.
	Shares []Sample
	// Messages is how many messages went between regions, and Bytes what they
	// weigh, with IP and UDP headers.
	Messages, Bytes int64
}

// Sample is the regions' shares at one time.
type Sample struct {
	At    int64   `json:"at"` // µs since the start of the run
	Share []int64 `json:"share"`
}

// decided is when arrival i was decided.
func (r Result) decided(w *workload.Workload, i int) int64 {
	if r.Decided == nil {
		return w.Arrivals[i].At
	}
	return r.Decided[i]
}

// waited is for how long arrival i waited.
func (r Result) waited(i int) int64 {
	if r.Waited == nil {
		return 0
	}
	return r.Waited[i]
}

// System is a way of enforcing one limit over several regions.
type System interface {
	// Name is what the system is called in tables.
	Name() string
	// Run offers the workload to the system. Both arguments are valid and fit
	// each other, and are not changed. The result follows from the arguments.
	Run(w *workload.Workload, n Network, seed uint64) Result
}

// Systems are all of this package, with the parameters that their authors or
// users give as usual.
func Systems() []System {
	return []System{
		PooledOracle{},
		StaticSplit{},
		CentralBucket{},
		EventualCounters{},
		Coordinator{},
		GlobalRandomDrop{},
		FlowProportional{},
	}
}

// headers is what a message weighs beside what it says: IPv4 and UDP, the least
// possible.
const headers = 28

// key is what it takes to name a bucket: a hash.
const key = 8
