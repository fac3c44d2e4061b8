package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// outputFlag adds -o table|json to a command, checked before it runs.
func outputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "table", "table or json")
	_ = cmd.RegisterFlagCompletionFunc("output", // fails for a flag that is not there
		cobra.FixedCompletions([]cobra.Completion{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *output != "table" && *output != "json" {
			return usageError(fmt.Errorf("-o %q: choose table or json", *output))
		}
		return nil
	}
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError(fmt.Errorf("unexpected argument %q; see %s --help", args[0], cmd.CommandPath()))
	}
	return nil
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// isTerminal says whether w is a terminal that can be drawn on.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// colour says whether output to a terminal may be coloured.
func colour() bool { return os.Getenv("NO_COLOR") == "" }

// table starts a table: cells end with a tab, rows with a new line; Flush prints it, visibly.
func table(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(visibly{w}, 0, 0, 2, ' ', 0) }

// mostShown bounds a name of somebody else's in what a person reads.
const mostShown = 128

// shown makes what a node told fit for a terminal: quoted unless it is plain, so that no name can write lines, colours or
// text from right to left, and cut. A node passes on what others call themselves.
func shown(s string) string {
	cut := ""
	if len(s) > mostShown {
		s, cut = strings.ToValidUTF8(s[:mostShown], ""), "..."
	}
	for _, c := range s {
		if !strconv.IsPrint(c) || c == utf8.RuneError {
			return strconv.QuoteToASCII(s) + cut
		}
	}
	return s + cut
}

// mostDetail bounds what a node says of a request that it refuses.
const mostDetail = 2048

// shownDetail is shown of a text of several sentences, which has quotes of its own.
func shownDetail(s string) string {
	if len(s) > mostDetail {
		s = strings.ToValidUTF8(s[:mostDetail], "") + "..."
	}
	return printable(s)
}

// printable is a text with a question mark for all that a terminal does not print.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if !strconv.IsPrint(c) {
			return '?'
		}
		return c
	}, s)
}

// argsShown is shown of the texts among arguments.
func argsShown(args []any) []any {
	fit := make([]any, len(args))
	for i, a := range args {
		if text, ok := a.(string); ok {
			a = shown(text)
		}
		fit[i] = a
	}
	return fit
}

// allShown is shown of each.
func allShown(all []string) []string {
	fit := make([]string, len(all))
	for i, s := range all {
		fit[i] = shown(s)
	}
	return fit
}

// span writes a duration without units that are zero: 1h, not 1h0m0s.
func span(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}

// counted writes a number with its noun: 1 limit, 2 limits.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
