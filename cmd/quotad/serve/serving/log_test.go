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
		"JSON": func(b *strings.Builder) *slog.Logger { return newLog(b, slog.LevelInfo, "eu", "n1") },
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

// TestLinesNameTheNode: each line says which node wrote it, and how long things took as text.
func TestLinesNameTheNode(t *testing.T) {
	var b strings.Builder
	newLog(&b, slog.LevelInfo, "eu-west", "n1").Warn("slow", "region", "us-east", "took",
		90*time.Second, "and", 1500*time.Millisecond)
	for _, want := range []string{`"node":"eu-west/n1"`, `"region":"us-east"`, `"took":"1m30s"`, `"and":"1.5s"`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in %s", want, b.String())
		}
	}
}
