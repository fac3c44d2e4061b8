package gossip

import (
	"bytes"
	"context"
	"log/slog"
	"strconv"
	"strings"
	"unicode"
)

// lines is the writer of memberlist's log. Each line goes to the logger at level debug, whatever
// level it claims, because much of what the library calls an error is normal between regions.
type lines struct{ log *slog.Logger }

// Write takes one line.
func (l lines) Write(p []byte) (int, error) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		line := string(bytes.TrimSpace(p))
		if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
			line = strconv.Quote(line) // it may contain names that anybody can have sent
		}
		l.log.Debug(line)
	}
	return len(p), nil
}
