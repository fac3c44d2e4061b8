package serving

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"
)

// hostile is a name that would write its own line, in red, and from right to left.
const hostile = "eu\n\x1b[31mok\tall is well\u202e\u009b"

// TestHostileNamesInTheLog: the log passes such names on neither as text nor as JSON.
func TestHostileNamesInTheLog(t *testing.T) {
	for name, handler := range map[string]func(*strings.Builder) *slog.Logger{
		"JSON": func(b *strings.Builder) *slog.Logger { return newLog(b, slog.LevelInfo) },
		"text": func(b *strings.Builder) *slog.Logger {
			return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{ReplaceAttr: logged}))
		},
	} {
		var b strings.Builder
		handler(&b).Info("member", "name", hostile, "err", errors.New(hostile), "long",
			strings.Repeat("x", 1<<20), "at", time.Second)
		text := strings.TrimSuffix(b.String(), "\n")
		if len(text) > 2*maxLogged || !strings.Contains(text, "u202e") {
			t.Errorf("%s has %d bytes: %.500q", name, len(text), text)
		}
		for _, c := range text {
			if !unicode.IsPrint(c) {
				t.Errorf("%s shows %q", name, c)
				break
			}
		}
	}
}
