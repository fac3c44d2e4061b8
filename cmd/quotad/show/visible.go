package show

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// visibly passes text on, and escapes everything that a terminal could take for a command. Names
// and messages come from nodes, which may have them from others.
type visibly struct{ w io.Writer }

// Write implements io.Writer.
func (v visibly) Write(b []byte) (int, error) {
	if _, err := io.WriteString(v.w, Visible(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Visible escapes characters that do not print, except new lines and tabs, as in Go: \x1b.
func Visible(text string) string {
	return escaped(text, func(r rune, size int, raw string) string {
		switch {
		case r == utf8.RuneError && size == 1:
			return fmt.Sprintf(`\x%02x`, raw[0])
		case r < 0x100:
			return fmt.Sprintf(`\x%02x`, r)
		case r < 0x10000:
			return fmt.Sprintf(`\u%04x`, r)
		}
		return fmt.Sprintf(`\U%08x`, r)
	})
}

// VisibleJSON escapes characters that do not print in JSON. The JSON keeps its meaning, because
// such characters are only in its strings.
func VisibleJSON(text string) string {
	return escaped(text, func(r rune, _ int, _ string) string {
		if r >= 0x10000 {
			high, low := utf16.EncodeRune(r)
			return fmt.Sprintf(`\u%04x\u%04x`, high, low)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

func escaped(text string, escape func(r rune, size int, raw string) string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		raw := text[i : i+size]
		i += size
		if r == '\n' || r == '\t' || unicode.IsPrint(r) && (r != utf8.RuneError || size > 1) {
			b.WriteString(raw)
		} else {
			b.WriteString(escape(r, size, raw))
		}
	}
	return b.String()
}
