package report

import (
	"math"
	"time"
)

// layout is one of the two widths in which every chart is drawn. The style sheet shows the one that
// fits. Lengths are in CSS pixels.
type layout struct {
	class string
	width float64
	// left and right are the margins of the plot, for the axis and for labels.
	left, right float64
	// ticks is the maximum number of marks on the time axis.
	ticks int
	// tips reports whether columns show their values under a pointer.
	tips bool
}

var (
	wide   = layout{class: "wide", width: 960, left: 54, right: 126, ticks: 13, tips: true}
	narrow = layout{class: "narrow", width: 380, left: 46, right: 84, ticks: 5}
)

// holding widens the right margin for long names of regions, up to a maximum.
func (l layout) holding(regions []string) layout {
	most := l.right + 56
	for _, region := range regions {
		l.right = min(most, max(l.right, textWidth(regionName(region))+22))
	}
	return l
}

// plot maps time and amounts to the pixels of one chart.
type plot struct {
	layout
	top, height float64 // of the area inside the axes
	length      time.Duration
	max         float64 // the amount at the top
}

// end returns the right edge of the area inside the axes.
func (p plot) end() float64 { return p.width - p.layout.right }

func (p plot) inner() float64 { return p.end() - p.left }

func (p plot) bottom() float64 { return p.top + p.height }

// x returns the position of a time, limited to the plot.
func (p plot) x(t time.Duration) float64 {
	if p.length <= 0 {
		return p.left
	}
	part := float64(t) / float64(p.length)
	return p.left + p.inner()*min(1, max(0, part))
}

// y returns the position of an amount, limited to the plot.
func (p plot) y(v float64) float64 {
	if p.max <= 0 {
		return p.bottom()
	}
	return p.bottom() - p.height*min(1, max(0, v/p.max))
}

// marks returns round amounts from 0 up to most, in at most n steps.
func marks(most float64, n int, whole bool) []float64 {
	if !(most > 0) || math.IsInf(most, 0) {
		return []float64{0}
	}
	step := math.Pow(10, math.Floor(math.Log10(most/float64(n))))
	for _, factor := range []float64{1, 2, 5, 10} {
		if most/(step*factor) <= float64(n) {
			step *= factor
			break
		}
	}
	if whole {
		step = max(1, step)
	}
	var values []float64
	for i := 0; float64(i)*step <= most*(1+1e-9); i++ {
		values = append(values, float64(i)*step)
	}
	return values
}

// clockSteps are the steps of time that people count in.
var clockSteps = []time.Duration{
	1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400,
}

// clockStep returns the distance between marks on a time axis with at most n marks.
func clockStep(length time.Duration, n int) time.Duration {
	if length < time.Duration(n)*time.Second {
		for step := time.Millisecond; ; step *= 10 {
			for _, factor := range []time.Duration{1, 2, 5} {
				if length/(step*factor) <= time.Duration(n) {
					return step * factor
				}
			}
		}
	}
	for _, seconds := range clockSteps {
		if step := seconds * time.Second; length/step <= time.Duration(n) {
			return step
		}
	}
	days := length/(24*time.Hour)/time.Duration(n) + 1
	return days * 24 * time.Hour
}

// instant formats one mark of a time axis. In a run of minutes, marks less than a minute apart are
// formatted like a clock.
func instant(t, step, length time.Duration) string {
	if t > 0 && step < time.Minute && length > 2*time.Minute {
		return clock(t)
	}
	return span(t)
}

// clock formats minutes and seconds.
func clock(t time.Duration) string {
	seconds := int64(t / time.Second)
	tens, ones := seconds%60/10, seconds%10
	return count(seconds/60) + ":" + string(rune('0'+tens)) + string(rune('0'+ones))
}
