package policy

import "strings"

// MaxStars bounds the *s of one value of an entry, and so the work that a value of a request can
// make.
const MaxStars = 8

// fitsPattern reports whether a value is as a pattern says: each * of it stands for any text, also
// for none. The time grows with the length of the value, for each * takes the first place that fits.
func fitsPattern(pattern, value string) bool {
	part, rest, star := strings.Cut(pattern, "*")
	if !star {
		return value == part
	}
	value, ok := strings.CutPrefix(value, part)
	for ok {
		if part, rest, star = strings.Cut(rest, "*"); !star {
			return strings.HasSuffix(value, part)
		}
		_, value, ok = strings.Cut(value, part)
	}
	return false
}

// patternsMeet reports whether some value fits both of two patterns.
func patternsMeet(a, b string) bool {
	// fits has, for the rest of a that is looked at, which rests of b meet it. Rests are looked at
	// from the shortest on.
	fits := make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		var shorter bool // of the rest of a that is shorter by one, and the rest of b that is
		for j := len(b); j >= 0; j-- {
			before := fits[j] // of the rest of a that is shorter by one
			switch {
			case i == len(a):
				fits[j] = j == len(b) || b[j] == '*' && fits[j+1]
			case a[i] == '*':
				fits[j] = before || j < len(b) && fits[j+1]
			case j == len(b):
				fits[j] = false
			case b[j] == '*':
				fits[j] = before || fits[j+1]
			default:
				fits[j] = a[i] == b[j] && shorter
			}
			shorter = before
		}
	}
	return fits[0]
}
