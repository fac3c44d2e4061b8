package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The longest name and the longest sentence that are shown, in characters. A key
// may be megabytes long; its beginning is enough to recognise it.
const (
	longestName  = 160
	longestProse = 4000
)

// visible spells out what a reader could not see, or what would turn the
// direction of the text around it: control and format characters, odd spaces and
// bytes that are no text. Keys are equal only if their bytes are, so two that
// differ should look different.
func visible(s string, longest int) string {
	var b strings.Builder
	for n := 0; s != ""; n++ {
		if n == longest {
			b.WriteString("…")
			break
		}
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[size:]
	}
	return b.String()
}

// name is a short text that came from outside, such as a key.
func name(s string) string { return visible(s, longestName) }

// regionName is the name of a region, or words in the place of none.
func regionName(s string) string {
	if s == "" {
		return "(no name)"
	}
	return name(s)
}

// prose is a sentence or more: its line breaks are only those of its source.
func prose(s string) string {
	return visible(strings.Join(strings.Fields(s), " "), longestProse)
}

// count writes a whole number with its thousands apart.
func count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(digits) - 3; i > start; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// short writes a number in the width of an axis: 950, 12,000, 1.2 M.
func short(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e18, "E"}, {1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}} {
		if v >= unit.size {
			return strconv.FormatFloat(v/unit.size, 'g', 4, 64) + " " + unit.name
		}
	}
	if v == math.Trunc(v) {
		return count(int64(v))
	}
	if v >= 100 {
		return count(int64(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// percent writes part of whole, with a space that no line breaks at; 99.96 % is
// not 100 %.
func percent(part, whole int64) string {
	if whole <= 0 {
		return "–"
	}
	p := 100 * float64(part) / float64(whole)
	if p > 0 && p < 100 {
		p = min(max(p, 0.1), 99.9)
	}
	return strconv.FormatFloat(p, 'f', 1, 64) + "\u00a0%"
}

// span writes a duration in the words of the page: 850 ms, 1.5 s, 2 min 10 s,
// 1 h 5 min.
func span(d time.Duration) string {
	if d < 0 {
		if d == math.MinInt64 {
			d++
		}
		return "−" + span(-d)
	}
	switch {
	case d == 0:
		return "0 s"
	case d.Round(time.Millisecond) < time.Second:
		return strconv.FormatFloat(float64(d)/1e6, 'g', 3, 64) + " ms"
	case d.Round(10*time.Millisecond) < time.Minute:
		return decimals(d.Round(10*time.Millisecond).Seconds()) + " s"
	case d.Round(time.Second) < time.Hour:
		d = d.Round(time.Second)
		return pair(int64(d/time.Minute), "min", int64(d%time.Minute/time.Second), "s")
	case d.Round(time.Minute) < 48*time.Hour:
		d = d.Round(time.Minute)
		return pair(int64(d/time.Hour), "h", int64(d%time.Hour/time.Minute), "min")
	}
	d = d.Round(time.Hour)
	return pair(int64(d/(24*time.Hour)), "d", int64(d%(24*time.Hour)/time.Hour), "h")
}

// decimals writes at most two digits after the point, and none for nothing.
func decimals(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(v, 'f', 2, 64), "0"), ".")
}

// pair writes an amount in two units of time, and the smaller only if there is
// something of it.
func pair(big int64, bigUnit string, small int64, smallUnit string) string {
	if small == 0 {
		return fmt.Sprintf("%d %s", big, bigUnit)
	}
	return fmt.Sprintf("%d %s %d %s", big, bigUnit, small, smallUnit)
}

// at is the i-th of a list that may be too short, and never less than nothing.
func at(list []int64, i int) int64 {
	if i < 0 || i >= len(list) {
		return 0
	}
	return max(0, list[i])
}

// total adds amounts up; a sum that no number holds stays at the largest.
func total(amounts ...int64) int64 {
	var sum int64
	for _, n := range amounts {
		n = max(0, n)
		if sum > math.MaxInt64-n {
			return math.MaxInt64
		}
		sum += n
	}
	return sum
}

// over is by how much n is above a bound, at least 0.
func over(n, bound int64) int64 {
	if n = max(0, n); n <= bound {
		return 0
	}
	return n - max(0, bound)
}
