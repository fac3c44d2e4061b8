package policy

import (
	"errors"
	"strconv"
	"strings"
)

// appendNetstring appends s as "length:bytes,". Whatever bytes the strings hold, a sequence of
// netstrings can be read in one way only: "a_b", "c" and "a", "b_c" never look alike.
func appendNetstring[S string | []byte](dst []byte, s S) []byte {
	dst = strconv.AppendInt(dst, int64(len(s)), 10)
	dst = append(dst, ':')
	dst = append(dst, s...)
	return append(dst, ',')
}

// cutNetstring reads one netstring from the front of text. It accepts exactly
// what appendNetstring writes.
func cutNetstring(text string) (value, rest string, err error) {
	digits, rest, found := strings.Cut(text, ":")
	if !found || !isInteger(digits) {
		return "", "", errors.New("expected a length and a colon")
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || n >= len(rest) {
		return "", "", errors.New("the length is beyond the end")
	}
	if rest[n] != ',' {
		return "", "", errors.New("no comma after the value")
	}
	return rest[:n], rest[n+1:], nil
}
