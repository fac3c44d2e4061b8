package rivals

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// column is a column of a table: its heading, and its cell for a row.
type column[Row any] struct {
	heading string
	cell    func(Row) string
	words   bool // text, aligned left; numbers are aligned right
}

// figureColumns are the columns of Table.
var figureColumns = []column[Figures]{
	{"workload", func(f Figures) string { return f.Workload }, true},
	{"system", func(f Figures) string { return f.System }, true},
	{"over, max", func(f Figures) string { return f.OvershootMax.String() }, false},
	{"over, mean", func(f Figures) string { return f.OvershootMean.String() }, false},
	{"false", func(f Figures) string { return f.FalseRate.String() }, false},
	{"late", func(f Figures) string { return fmt.Sprint(f.Late) }, false},
	{"split", func(f Figures) string { return fmt.Sprint(f.Split) }, false},
	{"used", func(f Figures) string { return f.Utilisation.String() }, false},
	{"first unit", func(f Figures) string { return millis(f.FirstUnit) }, false},
	{"95 %", func(f Figures) string { return millis(f.Rebalanced) }, false},
	{"round trips", func(f Figures) string { return thousandths(f.RoundTrips) }, false},
	{"fair", func(f Figures) string { return thousandths(ifAny(f.Fairness, 1000)) }, false},
	{"B/s", func(f Figures) string { return fmt.Sprint(f.BytesPerSecond) }, false},
	{"wait p50", func(f Figures) string { return millis(f.WaitP50) }, false},
	{"wait p99", func(f Figures) string { return millis(f.WaitP99) }, false},
}

// Table returns a Markdown table with a row for each of the figures. Its columns are aligned in
// plain text, too.
func Table(rows []Figures) string { return markdown(figureColumns, rows) }

// markdown formats rows as a table.
func markdown[Row any](columns []column[Row], rows []Row) string {
	lines := make([][]string, len(rows)+1)
	widths := make([]int, len(columns))
	for c, col := range columns {
		lines[0] = append(lines[0], col.heading)
		for r, row := range rows {
			// A bar would end the cell.
			lines[r+1] = append(lines[r+1], strings.ReplaceAll(col.cell(row), "|", `\|`))
		}
		for _, line := range lines {
			widths[c] = max(widths[c], utf8.RuneCountInString(line[c]))
		}
	}
	var b strings.Builder
	for r, line := range lines {
		for c, text := range line {
			space := strings.Repeat(" ", widths[c]-utf8.RuneCountInString(text))
			if columns[c].words {
				b.WriteString("| " + text + space + " ")
			} else {
				b.WriteString("| " + space + text + " ")
			}
		}
		b.WriteString("|\n")
		if r == 0 {
			rule(&b, columns, widths)
		}
	}
	return b.String()
}

// rule writes the line below the headings.
func rule[Row any](b *strings.Builder, columns []column[Row], widths []int) {
	for c, col := range columns {
		end := ":"
		if col.words {
			end = "-"
		}
		b.WriteString("|-" + strings.Repeat("-", widths[c]) + end)
	}
	b.WriteString("|\n")
}

// millis formats a time in ms, rounded up, or a dash for None.
func millis(t int64) string {
	if t < 0 {
		return "-"
	}
	return fmt.Sprintf("%d ms", (t+999)/1000)
}

// thousandths formats n / 1000 with three decimal places, or as a dash for None.
func thousandths(n int64) string {
	if n < 0 {
		return "-"
	}
	return fmt.Sprintf("%d.%03d", n/1000, n%1000)
}

// ifAny returns the part m of whole, in units of whole, or None if m is None.
func ifAny(m Millionths, whole int64) int64 {
	if m < 0 {
		return None
	}
	return int64(m) * whole / million
}
