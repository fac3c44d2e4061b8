package show

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxShown bounds the bytes that are shown of a name that comes from a node.
const maxShown = 128

// Name makes a name from a node safe to show: cut, and quoted unless it is plain, so that no name
// can write lines, colours or text from right to left. A node passes on the names that others give
// themselves.
func Name(s string) string {
	cut := ""
	if len(s) > maxShown {
		s, cut = strings.ToValidUTF8(s[:maxShown], ""), "..."
	}
	for _, c := range s {
		if !strconv.IsPrint(c) || c == utf8.RuneError {
			return strconv.QuoteToASCII(s) + cut
		}
	}
	return s + cut
}

// maxDetail bounds the bytes that are shown of a node's reason to refuse a request.
const maxDetail = 2048

// Detail makes a text of several sentences, which has its own quotes, safe to show.
func Detail(s string) string {
	if len(s) > maxDetail {
		s = strings.ToValidUTF8(s[:maxDetail], "") + "..."
	}
	return Printable(s)
}

// Printable returns a text with a question mark for every character that does not print.
func Printable(s string) string {
	return strings.Map(func(c rune) rune {
		if !strconv.IsPrint(c) {
			return '?'
		}
		return c
	}, s)
}

// safe makes the texts among arguments safe to show.
func safe(args []any) []any {
	fit := make([]any, len(args))
	for i, a := range args {
		if text, ok := a.(string); ok {
			a = Name(text)
		}
		fit[i] = a
	}
	return fit
}

// Names makes each name safe to show.
func Names(all []string) []string {
	fit := make([]string, len(all))
	for i, s := range all {
		fit[i] = Name(s)
	}
	return fit
}

// Span writes a duration without units that are zero: 1h, not 1h0m0s.
func Span(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}

// Counted writes a number with its noun: 1 limit, 2 limits.
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// OrNone returns "none" for an empty text.
func OrNone(s string) string { return cmp.Or(s, "none") }

// Listed writes words with commas between them.
func Listed[W ~string](words []W) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}

// Ago says how long ago something was.
func Ago(d time.Duration) string {
	if d < time.Second {
		return "just now"
	}
	return Lasted(d) + " ago"
}

// Lasted writes a duration to the second, and one of days or more to the hour.
func Lasted(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*day:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return Span(d.Truncate(time.Minute))
	}
	return Span(d.Truncate(time.Second))
}
