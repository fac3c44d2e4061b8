package rights

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
)

// The warning about clocks that are apart comes once for each change, and not when only the
// estimate moves.
func TestClocksApartAreTold(t *testing.T) {
	var lines strings.Builder
	e := &Stepper{Engine: &Engine{config: Config{Log: slog.New(slog.NewTextHandler(&lines, nil))}},
		apart: map[string]bool{}}
	const margin = algorithms.ClockMargin
	for i, tc := range []struct {
		apart int64
		known bool
		want  string // a word of the line; empty: there is none
	}{
		{margin, true, ""},
		{margin + 1, true, "further"},
		{margin + 2, true, ""},
		{2 * margin, false, ""},
		{margin * 3 / 4, true, ""},
		{-2 * margin, true, ""},
		{margin / 2, true, "near"},
		{0, true, ""},
		{-margin - 1, true, "further"},
	} {
		lines.Reset()
		e.watchClocks([]exchange.PeerAge{{Peer: "eu", ClockApart: tc.apart, ClockKnown: tc.known}})
		if got := lines.String(); (got == "") != (tc.want == "") ||
			!strings.Contains(got, tc.want) || strings.Count(got, "\n") > 1 {
			t.Errorf("step %d, %d us apart: %q, want %q", i, tc.apart, got, tc.want)
		}
	}
}
