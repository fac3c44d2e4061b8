//go:build !race

package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/cmd/quotad/serve/nodeconfig"
)

// What the code knows of itself is written into the reference by these tests, with -update:
//
//	go test ./cmd/quotad -run DocsReference -update
var updateDocs = flag.Bool("update", false, "write the generated parts of docs/reference anew")

// generated are the parts that are written, by the page and the name of the part.
var generated = []struct {
	page, part string
	write      func(t *testing.T) string
}{
	{"docs/reference/settings.md", "settings", func(*testing.T) string { return settingsTable() }},
	{"docs/reference/cli.md", "commands", func(*testing.T) string { return commandsReference(newRoot(io.Discard)) }},
	{"docs/reference/metrics.md", "metrics", metricsTable},
}

// TestDocsReference compares the generated parts of the reference with the code.
func TestDocsReference(t *testing.T) {
	for _, g := range generated {
		file := filepath.Join(repository, filepath.FromSlash(g.page))
		text, err := os.ReadFile(file)
		suite.Must(t, err)
		begin := fmt.Sprintf("<!-- %s: go test ./cmd/quotad -run DocsReference -update -->\n", g.part)
		end := fmt.Sprintf("<!-- end of %s -->\n", g.part)
		before, rest, found := strings.Cut(string(text), begin)
		got, after, ended := strings.Cut(rest, end)
		if !found || !ended {
			t.Errorf("%s lacks the line\n%sor\n%s", g.page, begin, end)
			continue
		}
		want := "\n" + strings.TrimSpace(g.write(t)) + "\n\n"
		if *updateDocs {
			suite.Must(t, os.WriteFile(file, []byte(before+begin+want+end+after), 0o644))
		} else if got != want {
			t.Errorf("%s is not what the code says of %s; write it with\n"+
				"go test ./cmd/quotad -run DocsReference -update", g.page, g.part)
		}
	}
}

// settingsTable has a row for each setting of a node.
func settingsTable() string {
	var b strings.Builder
	b.WriteString("| setting | default | what it says |\n|---|---|---|\n")
	for _, s := range nodeconfig.Settings() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.Path, s.Default, cell(s.Usage))
	}
	return b.String()
}

// cell makes a text one that may stand in a table: without bars, and without what could be taken
// for markup.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;", "\n", " ").Replace(text)
}

// commandsReference describes a command and those below it, as their help does.
func commandsReference(cmd *cobra.Command) string {
	var b strings.Builder
	writeCommand(&b, cmd)
	return b.String()
}

func writeCommand(b *strings.Builder, cmd *cobra.Command) {
	if cmd.Hidden || cmd.Name() == "help" {
		return
	}
	fmt.Fprintf(b, "## %s\n\n%s.\n\n", cmd.CommandPath(), cell(cmd.Short))
	if cmd.Runnable() && !cmd.HasSubCommands() {
		fmt.Fprintf(b, "```text\n%s\n```\n\n", cmd.UseLine())
	}
	if cmd.Long != "" {
		fmt.Fprintf(b, "```text\n%s\n```\n\n", strings.TrimSpace(cmd.Long))
	}
	if cmd.Example != "" {
		b.WriteString("```console\n")
		for l := range strings.Lines(strings.TrimSpace(cmd.Example) + "\n") {
			b.WriteString("$ " + strings.TrimSpace(l) + "\n")
		}
		b.WriteString("```\n\n")
	}
	writeFlags(b, cmd)
	if cmd.HasSubCommands() {
		b.WriteString("Subcommands:\n\n")
		for _, sub := range cmd.Commands() {
			if !sub.Hidden && sub.Name() != "help" {
				fmt.Fprintf(b, "- [%s](#%s): %s\n", sub.CommandPath(), slug(sub.CommandPath()),
					cell(lowerFirst(sub.Short)))
			}
		}
		b.WriteString("\n")
	}
	for _, sub := range cmd.Commands() {
		writeCommand(b, sub)
	}
}

func lowerFirst(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToLower(text[:1]) + text[1:]
}

// writeFlags writes a table of a command's flags. Settings of a node, which two commands take, are
// in a table of their own.
func writeFlags(b *strings.Builder, cmd *cobra.Command) {
	settings := map[string]bool{}
	for _, s := range nodeconfig.Settings() {
		settings[s.Flag()] = true
	}
	var rows []string
	hidden := 0
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Hidden || f.Name == "help":
		case settings[f.Name] && cmd.Flags().Lookup("data-dir") != nil:
			hidden++
		default:
			name := "--" + f.Name
			if f.Shorthand != "" {
				name = "-" + f.Shorthand + ", " + name
			}
			kind, usage := pflag.UnquoteUsage(f)
			rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |", name, cell(kind),
				cell(shownDefault(f)), cell(usage)))
		}
	})
	if len(rows) > 0 {
		slices.Sort(rows)
		fmt.Fprintf(b, "| flag | value | default | what it says |\n|---|---|---|---|\n%s\n\n",
			strings.Join(rows, "\n"))
	}
	if hidden > 0 {
		b.WriteString("Every [setting](settings.md) of a node is a flag, too.\n\n")
	}
}

// shownDefault returns the default of a flag, empty where that is nothing.
func shownDefault(f *pflag.Flag) string {
	if slices.Contains([]string{"false", "0", "[]", "0s"}, f.DefValue) {
		return ""
	}
	return f.DefValue
}
