package region

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
)

// TestMatesAreCounted: a number of nodes that is not the configured one is warned of once, of too
// few only after a while.
func TestMatesAreCounted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var m mates
		const more, fewer = "sees more nodes", "sees fewer nodes"
		for i, step := range []struct {
			after time.Duration
			seen  int
			says  string // in a new line; empty: there is none
		}{
			{0, 1, ""}, {10 * time.Second, 3, ""}, {0, 4, more}, {time.Hour, 4, ""}, {0, 5, more},
			{0, 3, ""}, {0, 4, more}, {0, 2, ""}, {matesPatience - 1, 2, ""}, {1, 2, fewer},
			{time.Hour, 2, ""}, {0, 3, ""}, {0, 2, ""}, {matesPatience, 3, ""}, {0, 2, ""},
			{matesPatience, 2, fewer},
		} {
			time.Sleep(step.after)
			log.Reset()
			m.saw(step.seen, 3, slog.New(slog.NewTextHandler(&log, nil)))
			if (step.says == "") != (log.Len() == 0) || !strings.Contains(log.String(), step.says) {
				t.Errorf("step %d, %d seen: %q, want %q", i, step.seen, &log, step.says)
			}
			if m.count() != step.seen {
				t.Errorf("step %d: %d counted of %d", i, m.count(), step.seen)
			}
		}
	})
}
