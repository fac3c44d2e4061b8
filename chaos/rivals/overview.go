package rivals

import "fmt"

// Overall sums up one system over all workloads.
type Overall struct {
	System    string `json:"system"`
	Workloads int64  `json:"workloads"`
	// Worst is the largest OvershootMax, which was on workload WorstOn. Exceeded is the number of
	// workloads with any overshoot.
	Worst    Millionths `json:"overshoot_worst_ppm"`
	WorstOn  string     `json:"overshoot_worst_on"`
	Exceeded int64      `json:"exceeded"`
	// Over, False and Used are the means of OvershootMax, FalseRate and
	// Utilisation.
	Over  Millionths `json:"overshoot_ppm"`
	False Millionths `json:"false_ppm"`
	Used  Millionths `json:"utilisation_ppm"`
	// MostFalse is the largest FalseRate, which was on workload MostFalseOn.
	MostFalse   Millionths `json:"false_worst_ppm"`
	MostFalseOn string     `json:"false_worst_on"`
	// WaitP99 and BytesPerSecond are the largest values (µs, bytes).
	WaitP99        int64 `json:"wait_p99_us"`
	BytesPerSecond int64 `json:"bytes_per_second"`
}

// Overview sums up figures by system, in the order in which systems appear.
func Overview(rows []Figures) []Overall {
	var all []Overall
	place := map[string]int{}
	for _, f := range rows {
		if _, ok := place[f.System]; !ok {
			place[f.System] = len(all)
			all = append(all, Overall{System: f.System})
		}
		all[place[f.System]].add(f)
	}
	for i := range all {
		o := &all[i]
		n := Millionths(o.Workloads)
		o.Over, o.False, o.Used = o.Over/n, o.False/n, o.Used/n
	}
	return all
}

// add adds the figures of one workload. Means are sums until all are added.
func (o *Overall) add(f Figures) {
	o.Workloads++
	if f.OvershootMax > 0 {
		o.Exceeded++
	}
	if f.OvershootMax > o.Worst {
		o.Worst, o.WorstOn = f.OvershootMax, f.Workload
	}
	if f.FalseRate > o.MostFalse {
		o.MostFalse, o.MostFalseOn = f.FalseRate, f.Workload
	}
	o.Over += f.OvershootMax
	o.False += f.FalseRate
	o.Used += f.Utilisation
	o.WaitP99 = max(o.WaitP99, f.WaitP99)
	o.BytesPerSecond = max(o.BytesPerSecond, f.BytesPerSecond)
}

// overallColumns are the columns of OverviewTable.
var overallColumns = []column[Overall]{
	{"system", func(o Overall) string { return o.System }, true},
	{"over, mean", func(o Overall) string { return o.Over.String() }, false},
	{"over, worst", func(o Overall) string { return o.Worst.String() }, false},
	{"exceeded on", func(o Overall) string {
		return fmt.Sprintf("%d of %d", o.Exceeded, o.Workloads)
	}, false},
	{"false, mean", func(o Overall) string { return o.False.String() }, false},
	{"false, worst", func(o Overall) string { return o.MostFalse.String() }, false},
	{"used, mean", func(o Overall) string { return o.Used.String() }, false},
	{"wait p99", func(o Overall) string { return millis(o.WaitP99) }, false},
	{"B/s, most", func(o Overall) string { return fmt.Sprint(o.BytesPerSecond) }, false},
}

// OverviewTable returns a Markdown table with a row for each system.
func OverviewTable(all []Overall) string { return markdown(overallColumns, all) }
