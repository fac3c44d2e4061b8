package report

import (
	"math"
	"time"
)

// layout is one of the two widths in which every chart is drawn; the style sheet
// shows the one that fits. Lengths are in CSS pixels.
type layout struct {
	class string
	width float64
	// left and right are the margins of the plot, for the axis and for labels.
	left, right float64
	// ticks is how many marks the time axis may have.
	ticks int
	// tips says whether columns name their values under a pointer.
	tips bool
}

var (
	wide   = layout{class: "wide", width: 960, left: 54, right: 126, ticks: 13, tips: true}
	narrow = layout{class: "narrow", width: 380, left: 46, right: 84, ticks: 5}
)

// holding widens the right margin for long names of regions, within reason.
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

// right edge of the area inside the axes.
func (p plot) end() float64 { return p.width - p.layout.right }

func (p plot) inner() float64 { return p.end() - p.left }

func (p plot) bottom() float64 { return p.top + p.height }

// x is the place of an instant, held inside the plot.
func (p plot) x(t time.Duration) float64 {
	if p.length <= 0 {
		return p.left
	}
	part := float64(t) / float64(p.length)
	return p.left + p.inner()*min(1, max(0, part))
}

// y is the place of an amount, held inside the plot.
func (p plot) y(v float64) float64 {
	if p.max <= 0 {
		return p.bottom()
	}
	return p.bottom() - p.height*min(1, max(0, v/p.max))
}

// marks returns round amounts from 0 up to most, at most n steps apart.
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

// steps of time that people count in.
var clockSteps = []time.Duration{
	1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400,
}

// clockStep is the distance of marks on a time axis with at most n of them.
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

// instant writes one mark of a time axis. Marks less than a minute apart in a run
// of minutes are written like a clock.
func instant(t, step, length time.Duration) string {
	if t > 0 && step < time.Minute && length > 2*time.Minute {
		return clock(t)
	}
	return span(t)
}

// clock writes minutes and seconds.
func clock(t time.Duration) string {
	seconds := int64(t / time.Second)
	tens, ones := seconds%60/10, seconds%10
	return count(seconds/60) + ":" + string(rune('0'+tens)) + string(rune('0'+ones))
}
