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
// characters of a terminal. Durations become text, which JSON would have as nanoseconds.
func logged(_ []string, a slog.Attr) slog.Attr {
	var text string
	switch err, failed := a.Value.Any().(error); {
	case a.Value.Kind() == slog.KindDuration:
		return slog.String(a.Key, show.Span(a.Value.Duration()))
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

// newLog returns a log that writes text to a terminal, and JSON to anything else. Each line names
// the node, as REGION/NODE; the attribute region is always about another region.
func newLog(w io.Writer, level slog.Level, region, node string) *slog.Logger {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: logged}
	var handler slog.Handler = slog.NewJSONHandler(w, options)
	if show.IsTerminal(w) {
		handler = slog.NewTextHandler(w, options)
	}
	return slog.New(numbered{handler}).With("node", region+"/"+node)
}
