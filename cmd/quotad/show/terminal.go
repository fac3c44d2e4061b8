// Package show writes for people and for programs: tables and JSON (terminal.go), and durations and
// counts (words.go). It makes names and texts from other nodes safe to print on a terminal
// (words.go, visible.go).
package show

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

// JSON writes a value as indented JSON.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Result writes the result of a command as JSON or in words.
func Result(w io.Writer, output string, found any, inWords func(io.Writer) error) error {
	if output == "json" {
		return JSON(w, found)
	}
	return inWords(w)
}

// IsTerminal reports whether w is a terminal that can be drawn on.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Colour reports whether output may be coloured: on a terminal, unless NO_COLOR is set, and elsewhere
// if CLICOLOR_FORCE is set to more than 0.
func Colour(w io.Writer) bool {
	if os.Getenv("NO_COLOR") != "" {
		return false
	}
	forced := os.Getenv("CLICOLOR_FORCE")
	return IsTerminal(w) || forced != "" && forced != "0"
}

// Row writes a row of a table of two columns, and makes the texts among args safe to show.
func Row(t io.Writer, name, format string, args ...any) {
	fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, safe(args)...))
}

// Table starts a table. Cells end with a tab and rows with a new line. Flush prints it with control
// characters escaped.
func Table(w io.Writer) *tabwriter.Writer {
	return tabwriter.NewWriter(visibly{w}, 0, 0, 2, ' ', 0)
}
