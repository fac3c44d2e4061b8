package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed page.html
var pageHTML string

// The style sheets of charts, and of what else is on a page.
var (
	//go:embed chart.css
	chartStyle string
	//go:embed page.css
	pageStyle string
)

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// Write writes the page about a run. If the page cannot be made it writes nothing. It returns
// errors of w with the context. It leaves out values that make no sense, such as negative amounts
// or regions that do not exist. It may be called concurrently.
func Write(w io.Writer, r Run) error {
	p := newPage(r)
	p.Style = template.CSS(chartStyle + pageStyle)
	var whole bytes.Buffer
	if err := pageTemplate.Execute(&whole, p); err != nil {
		return fmt.Errorf("report: making the page about %q: %w", p.Title, err)
	}
	if _, err := w.Write(whole.Bytes()); err != nil {
		return fmt.Errorf("report: writing the page about %q: %w: check the space and the rights where it goes", p.Title, err)
	}
	return nil
}
