package serving

import (
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"

	"github.com/quotad/quotad/cmd/quotad/show"
)

// maxLogged bounds a text in the log, in bytes. Stacks are longer than anything else.
const maxLogged = 16 << 10

// logged makes an attribute of a log entry safe to show on a terminal, because it may contain names
// from other nodes. The handlers escape line ends and quotes themselves, but not all control
// characters of a terminal.
func logged(_ []string, a slog.Attr) slog.Attr {
	var text string
	switch err, failed := a.Value.Any().(error); {
	case a.Value.Kind() == slog.KindString:
		text = a.Value.String()
	case failed:
		text = err.Error()
	default:
		return a
	}
	if len(text) > maxLogged {
		text = strings.ToValidUTF8(text[:maxLogged], "") + "..."
	}
	var b strings.Builder
	for _, c := range text {
		if strconv.IsPrint(c) || c == '\n' || c == '\t' {
			b.WriteRune(c)
		} else {
			fmt.Fprintf(&b, "\\u%04x", c)
		}
	}
	return slog.String(a.Key, b.String())
}

// newLog returns a log that writes text to a terminal, and JSON to anything else.
func newLog(w io.Writer, level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: logged}
	if show.IsTerminal(w) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}
