package gossip

import (
	"bytes"
	"context"
	"log/slog"
)

// lines is where memberlist writes its log: each line goes to the logger at
// level debug, whatever level it claims, because much of what the library
// calls an error is everyday life between regions.
type lines struct{ log *slog.Logger }

// Write takes one line.
func (l lines) Write(p []byte) (int, error) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug(string(bytes.TrimSpace(p)))
	}
	return len(p), nil
}
