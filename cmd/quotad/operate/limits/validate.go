package limits

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/policy"
)

func validateCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a limits document, and print everything that is wrong with it",
		Long: `validate checks a limits document and prints everything that is wrong with it, each with its place and how to mend it.
FILE - is standard input. A valid document may come with warnings, on stderr: what probably does less, or more, than was meant.

Exit codes: 0 valid, with or without warnings, 2 invalid.`,
		Args:              command.OneArgument("limits document", "limits.yaml"),
		ValidArgsFunction: command.CompleteYAML,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := Load(args[0])
			if err != nil {
				return err
			}
			v := validated(Path(args[0]), d)
			inWords := func(w io.Writer) error {
				return v.print(w, cmd.ErrOrStderr(), d.Warnings())
			}
			return show.Result(cmd.OutOrStdout(), output, v, inWords)
		},
	}
	command.OutputFlag(cmd, &output)
	return cmd
}

// validation is the output for a valid document.
type validation struct {
	File     string    `json:"file"`
	Version  int64     `json:"version"`
	Epoch    string    `json:"epoch"`
	Limits   int       `json:"limits"`
	Regions  int       `json:"regions"`
	Warnings []warning `json:"warnings"`
}

// warning is policy.Warning as JSON.
type warning struct {
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Path   string `json:"path"`
	Text   string `json:"text"`
	Mend   string `json:"mend"`
}

func validated(file string, d *policy.Document) validation {
	v := validation{File: file, Version: d.Version, Epoch: d.Epoch().String(),
		Limits: len(d.Limits), Regions: len(d.Regions), Warnings: []warning{}}
	for _, w := range d.Warnings() {
		v.Warnings = append(v.Warnings, warning{w.Pos.Line, w.Pos.Column, w.Path, w.Problem, w.Mend})
	}
	return v
}

// print says that the document is valid, and writes the warnings to stderr.
func (v validation) print(stdout, stderr io.Writer, warnings []policy.Warning) error {
	_, err := fmt.Fprintf(stdout, "%s: valid: version %d, epoch %s, %s, %s\n",
		v.File, v.Version, v.Epoch, show.Counted(v.Limits, "limit"), show.Counted(v.Regions,
			"region"))
	if err == nil {
		tellWarnings(stderr, v.File+" can be used", warnings)
	}
	return err
}

// tellWarnings writes what became of something, with warnings. It writes nothing if there are none.
func tellWarnings(w io.Writer, done string, warnings []policy.Warning) {
	if len(warnings) == 0 {
		return
	}
	text := fmt.Sprintf("quotad: %s, with %s", done, show.Counted(len(warnings), "warning"))
	for _, one := range warnings {
		text += "\n" + one.String()
	}
	fmt.Fprintln(w, show.Visible(text))
}
