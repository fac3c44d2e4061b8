package wire

import (
	"strconv"
	"strings"

	"github.com/quotad/quotad/region/decide/admit"
)

// Safe makes a field error fit to show. The caller chose the name of a descriptor, so it is quoted
// unless it is a plain word, as in descriptors["a\nb"].
func Safe(path string, e *admit.FieldError) admit.FieldError {
	field := e.Field
	if name, ok := strings.CutPrefix(field, "descriptors."); ok && !plain(name) {
		field = "descriptors[" + Quote(name) + "]"
	}
	return admit.FieldError{Field: path + field, Problem: e.Problem}
}

// plain reports whether a name can be shown without quotes.
func plain(name string) bool {
	for _, c := range []byte(name) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' ||
			c == '-' || c == '.') {
			return false
		}
	}
	return name != "" && len(name) <= maxEchoed
}

// maxEchoed bounds the bytes of input that an answer repeats.
const maxEchoed = 64

// Quote makes input safe to show: ASCII, in quotes, and cut to maxEchoed bytes.
func Quote(s string) string {
	if len(s) > maxEchoed {
		return strconv.QuoteToASCII(s[:maxEchoed]) + "..."
	}
	return strconv.QuoteToASCII(s)
}

// Complaint says what is wrong with a request that was answered as InvalidRequest. It is empty for
// all others.
func Complaint(d admit.Decision) string {
	if d.Problem == nil {
		return ""
	}
	shown := Safe("", d.Problem)
	return shown.Error()
}
