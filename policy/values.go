package policy

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
)

// PPM is a fraction in parts per million. Fractions are read from their decimal
// text and never pass through floating point, so every node of every region
// derives the same whole units from them.
type PPM int64

const (
	// PPMOne is the fraction 1.
	PPMOne PPM = 1_000_000
	// Unlimited is the BorrowingLimit of an entry that gives none.
	Unlimited PPM = -1
)

// String returns the shortest decimal text of the fraction, or "unlimited".
func (p PPM) String() string {
	if p == Unlimited {
		return "unlimited"
	}
	sign := ""
	if p < 0 {
		sign, p = "-", -p
	}
	whole := sign + strconv.FormatInt(int64(p/PPMOne), 10)
	rest := int64(p % PPMOne)
	if rest == 0 {
		return whole
	}
	digits := strconv.FormatInt(rest+int64(PPMOne), 10)[1:] // keeps leading zeros
	return whole + "." + strings.TrimRight(digits, "0")
}

// parsePPM reads a fraction of at most six decimals: "0", "0.95", "2". It reports false for any
// other form. A value too large to hold becomes the largest PPM, which every range refuses.
func parsePPM(text string) (PPM, bool) {
	whole, decimals, point := strings.Cut(text, ".")
	if !isDigits(whole) || (len(whole) > 1 && whole[0] == '0') {
		return 0, false
	}
	if point && (!isDigits(decimals) || len(decimals) > 6) {
		return 0, false
	}
	decimals += strings.Repeat("0", 6-len(decimals))
	n, err := strconv.ParseInt(whole+decimals, 10, 64)
	if err != nil {
		return PPM(1<<63 - 1), true
	}
	return PPM(n), true
}

// isInteger reports whether text is a whole number in the only form that an ID uses.
func isInteger(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	if !isDigits(digits) {
		return false
	}
	return digits[0] != '0' || text == "0"
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// units are the units of Go's durations, and the two that quotas are often stated in. A longer word
// stands before a word that it begins with.
var units = []struct {
	name string
	size time.Duration
}{
	{"ns", time.Nanosecond},
	{"µs", time.Microsecond}, // U+00B5, micro sign
	{"μs", time.Microsecond}, // U+03BC, Greek letter mu
	{"us", time.Microsecond}, // after the other two, so that FormatWindow writes it
	{"ms", time.Millisecond},
	{"s", time.Second},
	{"m", time.Minute},
	{"h", time.Hour},
	{"d", 24 * time.Hour},
	{"w", 7 * 24 * time.Hour},
}

// beyondWindow stands for every duration above MaxWindow, so that sums of them
// cannot overflow.
const beyondWindow = MaxWindow + 1

// parseWindow reads a duration such as 500ms, 1m, 1h30m, 1.5d. It reports false
// for text that is not a duration or is not a whole number of nanoseconds, and
// returns beyondWindow for anything above MaxWindow.
func parseWindow(text string) (time.Duration, bool) {
	var total time.Duration
	if text == "" {
		return 0, false
	}
	for text != "" {
		part, rest, ok := parseWindowPart(text)
		if !ok {
			return 0, false
		}
		total, text = min(total+part, beyondWindow), rest
	}
	return total, true
}

// parseWindowPart reads one number with its unit from the front of text.
func parseWindowPart(text string) (part time.Duration, rest string, ok bool) {
	end := strings.IndexFunc(text, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end < 0 {
		return 0, "", false
	}
	number, rest := text[:end], text[end:]
	for _, u := range units {
		if after, found := strings.CutPrefix(rest, u.name); found {
			part, ok = scale(number, u.size)
			return part, after, ok
		}
	}
	return 0, "", false
}

// scale multiplies a decimal number by a unit, exactly or not at all.
func scale(number string, unit time.Duration) (time.Duration, bool) {
	whole, decimals, point := strings.Cut(number, ".")
	if !isDigits(whole) || (point && (!isDigits(decimals) || len(decimals) > 9)) {
		return 0, false
	}
	var fraction time.Duration
	if point {
		n, _ := strconv.ParseUint(decimals, 10, 64) // nine digits always fit
		power := uint64(1)
		for range len(decimals) {
			power *= 10
		}
		hi, lo := bits.Mul64(n, uint64(unit))
		quotient, rest := bits.Div64(hi, lo, power) // n < power, so the quotient is below one unit
		if rest != 0 {
			return 0, false
		}
		fraction = time.Duration(quotient)
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n > int64(MaxWindow/unit) {
		return beyondWindow, true
	}
	return min(time.Duration(n)*unit+fraction, beyondWindow), true
}

// FormatWindow writes a window as a person would, and as a document may say it: 1m, 24h as 1d, 90s
// as 1m30s. No time at all, or less, is 0s.
func FormatWindow(d time.Duration) string {
	if d <= 0 {
		return "0s"
	}
	var b strings.Builder
	for _, u := range slices.Backward(units) {
		if n := d / u.size; n > 0 && u.name != "w" {
			b.WriteString(strconv.FormatInt(int64(n), 10))
			b.WriteString(u.name)
			d -= n * u.size
		}
	}
	return b.String()
}
