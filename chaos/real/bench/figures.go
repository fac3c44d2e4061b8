package bench

import (
	"math"
	"slices"
	"time"
)

// figures are those of one subject: the medians of its rounds. What is not known is nil.
type figures struct {
	Name string `json:"name"`
	// Decided counts the decisions of all rounds.
	Decided    int64    `json:"decisions"`
	PerSecond  float64  `json:"decisions_per_second"`
	P50        *float64 `json:"p50_us"`
	P99        *float64 `json:"p99_us"`
	P999       *float64 `json:"p999_us"`
	ServerCPU  *float64 `json:"server_cpu_us_per_decision"`
	RedisCPU   *float64 `json:"redis_cpu_us_per_decision"`
	Scripts    *float64 `json:"script_calls_per_decision"`
	Mallocs    *float64 `json:"allocations_per_decision"`
	TimesFloor *float64 `json:"times_floor"`
	Refused    int64    `json:"refused"`
	Late       int64    `json:"late"`
	Failed     int64    `json:"errors"`
	Denied     int64    `json:"denials"`
	FirstError string   `json:"first_error,omitempty"`

	asked int64
}

// figuresOf computes the figures of a subject. floor has the rounds of the floor.
func figuresOf(s *subject, floor []round) figures {
	f := figures{Name: s.name}
	var perSecond, p50, p99, p999, server, redis, scripts, mallocs, times []float64
	for i, r := range s.rounds {
		f.Decided += r.decided
		f.asked, f.Denied = f.asked+r.asked, f.Denied+r.denied
		f.Refused, f.Late, f.Failed = f.Refused+r.refused, f.Late+r.late, f.Failed+r.failed
		if r.first != nil && f.FirstError == "" {
			f.FirstError = r.first.Error()
		}
		perSecond = append(perSecond, float64(r.decided)/r.lasted.Seconds())
		if r.decided == 0 {
			continue
		}
		slices.Sort(r.took)
		p50 = append(p50, micros(percentile(r.took, 0.5)))
		p99 = append(p99, micros(percentile(r.took, 0.99)))
		p999 = append(p999, micros(percentile(r.took, 0.999)))
		server = r.each(server, r.server)
		redis = r.each(redis, r.redis)
		if r.scripts != nil {
			scripts = append(scripts, float64(*r.scripts)/float64(r.decided))
		}
		if r.mallocs != nil {
			mallocs = append(mallocs, *r.mallocs/float64(r.decided))
		}
		if i < len(floor) {
			times = r.compare(times, &floor[i], s.hasRedis)
		}
	}
	if m := median(perSecond); m != nil {
		f.PerSecond = *m
	}
	f.P50, f.P99, f.P999 = median(p50), median(p99), median(p999)
	f.ServerCPU, f.RedisCPU, f.Scripts = median(server), median(redis), median(scripts)
	f.Mallocs, f.TimesFloor = median(mallocs), median(times)
	return f
}

// each appends a processor time for each decision, in microseconds, if it is known.
func (r *round) each(all []float64, ran *time.Duration) []float64 {
	if ran == nil || r.decided == 0 {
		return all
	}
	return append(all, micros(*ran)/float64(r.decided))
}

// compare appends how many times the floor's processor time a decision takes, server and Redis
// together, if both are known.
func (r *round) compare(all []float64, floor *round, hasRedis bool) []float64 {
	own, least := r.each(r.each(nil, r.server), r.redis), floor.each(nil, floor.server)
	if r.server == nil || hasRedis && r.redis == nil || len(least) == 0 || least[0] == 0 {
		return all
	}
	sum := 0.0
	for _, part := range own {
		sum += part
	}
	return append(all, sum/least[0])
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// percentile returns the least of the sorted times that at least a part of them does not exceed,
// by nearest rank; 0 of none.
func percentile(sorted []time.Duration, part float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(part * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// median returns the middle of some numbers, or the mean of the two in the middle; nil of none.
func median(all []float64) *float64 {
	if len(all) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(all))
	half := len(sorted) / 2
	middle := sorted[half]
	if len(sorted)%2 == 0 {
		middle = (sorted[half-1] + sorted[half]) / 2
	}
	return &middle
}
