package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// commandLine finds commands of quotad, each on a line of its own.
var commandLine = regexp.MustCompile("(?m)^quotad [^\n#>|]*")

// fencedCommands returns the commands of quotad in the fenced blocks of a page.
func fencedCommands(page string) (all []string) {
	for i, part := range strings.Split(page, "\n```") {
		if i%2 == 1 {
			all = append(all, commandLine.FindAllString(part, -1)...)
		}
	}
	return all
}

// TestRunbookCommands: commands of the pages about operation and deployment are commands of quotad,
// with the flags that these have.
func TestRunbookCommands(t *testing.T) {
	pages := 0
	for _, pattern := range []string{"operations/alerts.md", "operations/runbooks/*.md",
		"how-to/kubernetes.md", "how-to/compose.md", "how-to/systemd.md"} {
		files, err := filepath.Glob(filepath.Join("../../docs", pattern))
		suite.Must(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			suite.Must(t, err)
			pages++
			for _, line := range fencedCommands(string(text)) {
				if err := isCommand(line); err != nil {
					t.Errorf("%s: %q is no command of quotad: %v", file, line, err)
				}
			}
		}
	}
	if pages < 20 {
		t.Errorf("only %d pages were looked at", pages)
	}
}

// isCommand reports whether a line is a command of quotad, and why not.
func isCommand(line string) error {
	root := newRoot(io.Discard)
	cmd, rest, err := root.Find(strings.Fields(line)[1:])
	switch {
	case err != nil:
		return err
	case cmd.Hidden: // a command of before
		return errors.New(cmd.Short)
	case cmd.HasSubCommands():
		return errors.New("it only has subcommands")
	case cmd.ParseFlags(rest) != nil:
		return cmd.ParseFlags(rest)
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}
