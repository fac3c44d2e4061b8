package report

import (
	_ "embed"
	"fmt"
	"io"
)

var (
	// The style sheets of charts, and of what else is on a page.
	//go:embed chart.css
	chartStyle string
	//go:embed page.css
	pageStyle string
	// The patterns that charts are hatched with.
	//go:embed patterns.svg
	patterns markup
)

// Write writes the page about a run. It returns errors of w with the context. It leaves out values
// that make no sense, such as negative amounts or regions that do not exist. It may be called
// concurrently.
func Write(w io.Writer, r Run) error {
	p := page{&writer{}, r}
	p.write()
	if _, err := io.WriteString(w, p.String()); err != nil {
		return fmt.Errorf("report: writing the page about %q: %w: check the space and the rights where it goes", p.title(), err)
	}
	return nil
}
