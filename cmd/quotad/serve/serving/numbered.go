package serving

import (
	"context"
	"fmt"
	"log/slog"
)

// numbered is a handler that adds to warnings and errors the number under which
// docs/reference/log.md says what they mean.
type numbered struct{ slog.Handler }

// Handle implements slog.Handler.
func (h numbered) Handle(ctx context.Context, r slog.Record) error {
	if number, known := messageNumbers[r.Message]; known && r.Level >= slog.LevelWarn {
		r = r.Clone()
		r.AddAttrs(slog.String("see", fmt.Sprintf("QD%d", number)))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h numbered) WithAttrs(all []slog.Attr) slog.Handler {
	return numbered{h.Handler.WithAttrs(all)}
}

// WithGroup implements slog.Handler.
func (h numbered) WithGroup(name string) slog.Handler { return numbered{h.Handler.WithGroup(name)} }
