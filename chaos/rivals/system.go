package rivals

import "github.com/quotad/quotad/chaos/play/workload"

// Network describes the network between the regions. It loses no message.
type Network struct {
	// OneWay[i][j] is how long a message takes from region i to region j, in µs, and 0 for i = j.
	OneWay [][]int64
}

// Uniform returns a network in which every message takes the same time, in µs.
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

// RoundTrip returns how long a message takes from region i to j and back, in µs.
func (n Network) RoundTrip(i, j int) int64 { return n.OneWay[i][j] + n.OneWay[j][i] }

// farthest returns the longest round trip of region i.
func (n Network) farthest(i int) int64 {
	var longest int64
	for j := range n.OneWay {
		longest = max(longest, n.RoundTrip(i, j))
	}
	return longest
}

// Result is what a system did with a workload.
type Result struct {
	// Admitted says for each arrival, by its index, whether it was admitted.
	Admitted []bool
	// Waited is how long each arrival waited for another region, in µs. Nil if none ever does.
	Waited []int64
	// Decided is when each arrival was decided, in µs since the start of the run: between its
	// arrival and the end of its wait. It says in which window the arrival counts. Nil if all are
	// decided as they arrive.
	Decided []int64
	// Shares are what each region might admit in a window, at least every 100 ms and whenever they
	// changed, by time. Nil for a system without shares.
	Shares []Sample
	// Messages is the number of messages between regions. Bytes is their size with IP and UDP
	// headers.
	Messages, Bytes int64
}

// Sample is the regions' shares at one time.
type Sample struct {
	At    int64 // µs since the start of the run
	Share []int64
}

// decided returns when arrival i was decided.
func (r Result) decided(w *workload.Workload, i int) int64 {
	if r.Decided == nil {
		return w.Arrivals[i].At
	}
	return r.Decided[i]
}

// waited returns how long arrival i waited.
func (r Result) waited(i int) int64 {
	if r.Waited == nil {
		return 0
	}
	return r.Waited[i]
}

// System is a way of enforcing one limit over several regions.
type System interface {
	// Name is the system's name in tables.
	Name() string
	// Run offers the workload to the system. w and n must be valid and fit each other; Run does not
	// change them. The result depends only on the arguments.
	Run(w *workload.Workload, n Network, seed uint64) Result
}

// Systems returns all systems of this package, with the usual parameters according to their authors
// or users.
func Systems() []System {
	return []System{
		PooledOracle{},
		StaticSplit{},
		CentralBucket{},
		EventualCounters{},
		Coordinator{},
	}
}

// headers is the size of a message's headers, in bytes: IPv4 and UDP, the least possible.
const headers = 28

// key is the size of a bucket's name, in bytes: a hash.
const key = 8
