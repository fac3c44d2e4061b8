package bench

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// counted writes a number with its noun: 1 key, 2 keys.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// span writes a duration without units that are zero: 1m, not 1m0s.
func span(d time.Duration) string {
	s := d.String()
	if short, found := strings.CutSuffix(s, "m0s"); found {
		return short + "m"
	}
	return s
}

// listed writes words with commas between them.
func listed[W ~string](words []W) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}

// maxPlain bounds the bytes that are shown of a text of a server.
const maxPlain = 2048

// plain makes a text of a server safe to print: cut, with a question mark for every character that
// does not print.
func plain(s string) string {
	if len(s) > maxPlain {
		s = strings.ToValidUTF8(s[:maxPlain], "") + "..."
	}
	return strings.Map(func(c rune) rune {
		if !strconv.IsPrint(c) {
			return '?'
		}
		return c
	}, s)
}
