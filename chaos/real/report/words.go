package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The maximum lengths of names and sentences on the page, in characters. A key may be megabytes
// long; its beginning is enough to recognise it.
const (
	longestName  = 160
	longestProse = 4000
)

// visible spells out characters that a reader could not see, or that would change the direction of
// the text around them: control and format characters, unusual spaces, and bytes that are not text.
// Keys are equal only if their bytes are, so two that differ should look different.
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

// name returns a short text from outside, such as a key, for display.
func name(s string) string { return visible(s, longestName) }

// regionName returns the name of a region, or other words if it is empty.
func regionName(s string) string {
	if s == "" {
		return "(no name)"
	}
	return name(s)
}

// prose returns a sentence or more for display. Line breaks become spaces.
func prose(s string) string {
	return visible(strings.Join(strings.Fields(s), " "), longestProse)
}

// count formats a whole number with separators for thousands.
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

// short formats a number for an axis: 950, 12,000, 1.2 M.
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

// percent formats part / whole as a percentage with a non-breaking space. 99.96 % does not become
// 100 %.
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

// span formats a duration as 850 ms, 1.5 s, 2 min 10 s or 1 h 5 min.
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

// decimals formats at most two digits after the point, and none if they are zero.
func decimals(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(v, 'f', 2, 64), "0"), ".")
}

// pair formats an amount in two units of time, and leaves out the smaller one if it is zero.
func pair(big int64, bigUnit string, small int64, smallUnit string) string {
	if small == 0 {
		return fmt.Sprintf("%d %s", big, bigUnit)
	}
	return fmt.Sprintf("%d %s %d %s", big, bigUnit, small, smallUnit)
}

// at returns the i-th element of a list, 0 if the list is too short or the element is negative.
func at(list []int64, i int) int64 {
	if i < 0 || i >= len(list) {
		return 0
	}
	return max(0, list[i])
}

// total adds up amounts. If the sum overflows it is the largest number.
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

// over returns by how much n exceeds a bound, at least 0.
func over(n, bound int64) int64 {
	if n = max(0, n); n <= bound {
		return 0
	}
	return n - max(0, bound)
}
