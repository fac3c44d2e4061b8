package rivals

import (
	"fmt"

	"github.com/quotad/quotad/chaos/play/workload"
)

// Millionths is a part of a whole, in millionths. Figures are whole numbers so that they are the
// same on every machine.
type Millionths int64

// million is the whole.
const million = 1_000_000

// String returns the part in percent, with two decimal places, rounded half up.
func (m Millionths) String() string {
	return fmt.Sprintf("%d.%02d %%", (m+50)/10_000, (m+50)/100%100)
}

// partOf returns a / b in millionths, 0 if b is 0.
func partOf(a, b int64) Millionths {
	if b == 0 {
		return 0
	}
	return Millionths(workload.MulDiv(a, million, b))
}

// None stands for a time or part that does not exist: a system without shares has no time to
// rebalance, a workload without contention no fairness.
const None = -1

// Figures measure one system on one workload. Amounts are in units, times in µs.
type Figures struct {
	Workload string `json:"workload"`
	System   string `json:"system"`

	// Offered is what was asked for, Admitted what the system admitted of it, and Pooled what one
	// limiter without latency admits of the same requests in the order in which the system decided
	// them.
	Offered  int64 `json:"offered"`
	Admitted int64 `json:"admitted"`
	Pooled   int64 `json:"pooled"`

	// OvershootMax is the excess of the worst cell over what it may hold (as chaos/judge/oracle judges
	// the algorithm: the limit, or the burst of a bucket), as a part of the limit. OvershootMean is
	// the mean excess of all cells in which anything was asked for, where cells without excess
	// count 0. CellsOver is the number of cells with an excess, of Cells.
	OvershootMax  Millionths `json:"overshoot_max_ppm"`
	OvershootMean Millionths `json:"overshoot_mean_ppm"`
	Cells         int64      `json:"cells"`
	CellsOver     int64      `json:"cells_over"`

	// FalseDenials is what the pooled limiter admits and the system did not, as chaos/judge/oracle nets
	// it over a window, and FalseRate its part of Pooled. Late is the part of FalseDenials that was
	// denied within a round trip of the beginning of a region's shortage, when no system could have
	// moved anything there yet. Split was denied later, while others had units to spare.
	// RightlyDenied is what the pooled limiter denies, too.
	FalseDenials  int64      `json:"false_denials"`
	FalseRate     Millionths `json:"false_ppm"`
	Late          int64      `json:"false_late"`
	Split         int64      `json:"false_split"`
	RightlyDenied int64      `json:"rightly_denied"`

	// Utilisation is Admitted divided by the sum over all windows of min(asked for, limit). It is
	// above 100 % for a system that exceeds the limit, and may be for a bucket with its burst.
	Utilisation Millionths `json:"utilisation_ppm"`

	// FirstUnit is the time from the region's first denial after the step until its share first
	// rose. Rebalanced is the time until its share was first 95 % of what the water-fill of the new
	// demand gives it. Both are 0 if nothing was denied. They are None for a workload without a
	// step, for a system without shares, and if it never happened. RoundTrips is Rebalanced in
	// thousandths of the region's longest round trip.
	FirstUnit  int64 `json:"first_unit_us"`
	Rebalanced int64 `json:"rebalanced_us"`
	RoundTrips int64 `json:"rebalanced_thousandths_of_round_trips"`

	// Fairness is Jain's index of what each region was given as a part of its water-fill, over the
	// windows in which more was asked for than the limit; None if there is no such window.
	Fairness Millionths `json:"fairness_ppm"`

	// BytesPerSecond is the traffic between regions for this one bucket, and MessagesPerSecond its
	// number of messages, both rounded up.
	BytesPerSecond    int64 `json:"bytes_per_second"`
	MessagesPerSecond int64 `json:"messages_per_second"`

	// WaitP50 and WaitP99 are percentiles, over all requests, of the time that a request waited for
	// another region.
	WaitP50 int64 `json:"wait_p50_us"`
	WaitP99 int64 `json:"wait_p99_us"`
}

// Measure computes the figures of a system's result. The result must be of this workload, and n the
// network that the system ran on. Measure leaves System empty.
func Measure(w *workload.Workload, r Result, n Network) Figures {
	f := Figures{Workload: w.Name}
	for i, a := range w.Arrivals {
		f.Offered += a.Cost
		if r.Admitted[i] {
			f.Admitted += a.Cost
		}
	}
	f.judge(w, r)
	f.overshoot(w, r)
	f.causes(w, r, n)
	f.use(w, r)
	f.rebalance(w, r, n)
	f.BytesPerSecond = perSecond(r.Bytes, w.Length)
	f.MessagesPerSecond = perSecond(r.Messages, w.Length)
	f.WaitP50, f.WaitP99 = waits(r)
	return f
}

// perSecond returns an amount over length µs as an amount per second, rounded up.
func perSecond(amount, length int64) int64 {
	return (amount*workload.Second + length - 1) / length
}

// Compare runs every system on a workload, in their order. The same arguments give the same figures.
func Compare(w *workload.Workload, systems []System, n Network, seed uint64) []Figures {
	rows := make([]Figures, len(systems))
	for i, s := range systems {
		rows[i] = Measure(w, s.Run(w, n, seed), n)
		rows[i].System = s.Name()
	}
	return rows
}
