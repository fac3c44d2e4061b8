package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/show"
)

// sourceDateEpoch is the environment variable that gives a build a fixed date.
const sourceDateEpoch = "SOURCE_DATE_EPOCH"

// addMan adds the command of man pages, which are of all commands, to those that print files.
func addMan(root *cobra.Command) {
	generate, _, _ := root.Find([]string{"generate"}) // it is there
	generate.AddCommand(&cobra.Command{
		Use:   "man DIR",
		Short: "Write a man page for every command",
		Long: `man writes the man page of every command into a folder, which it makes if need be: quotad.1, quotad-serve.1 and so on.
The same binary always writes the same pages: they carry no date, or the one of SOURCE_DATE_EPOCH (seconds since 1970).`,
		Example:           "  quotad generate man /usr/local/share/man/man1",
		Args:              command.OneArgument("folder", "man1"),
		ValidArgsFunction: command.CompleteFolders,
		RunE: func(cmd *cobra.Command, args []string) error {
			pages, err := writeManPages(args[0])
			if err == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "wrote %s to %s\n",
					show.Counted(pages, "man page"), args[0])
			}
			return err
		},
	})
}

// writeManPages writes the page of every command, and returns the number of pages.
func writeManPages(dir string) (int, error) {
	date, err := manDate()
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, fmt.Errorf("make the folder for the man pages: %w; choose another", err)
	}
	return writeManTree(dir, newRoot(io.Discard), date)
}

// writeManTree writes the pages of a command and its subcommands, except those that only quotad
// itself runs.
func writeManTree(dir string, cmd *cobra.Command, date *time.Time) (pages int, err error) {
	for _, sub := range cmd.Commands() {
		if sub.Hidden {
			continue
		}
		n, err := writeManTree(dir, sub, date)
		pages += n
		if err != nil {
			return pages, err
		}
	}
	page, err := manPage(cmd, date)
	if err != nil {
		return pages, err
	}
	file := filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")
	if err := os.WriteFile(file, page, 0o644); err != nil {
		return pages, fmt.Errorf("write man page: %w; check that the folder can be written to", err)
	}
	return pages + 1, nil
}

// manDate returns the date on the pages, nil for none. It is never the day on which they are
// written.
func manDate() (*time.Time, error) {
	text := os.Getenv(sourceDateEpoch)
	if text == "" {
		return nil, nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf(
			"%s=%q is no time; write whole seconds since 1970, or unset it", sourceDateEpoch, text))
	}
	date := time.Unix(seconds, 0).UTC()
	return &date, nil
}

// manPage renders one page. It changes the command, so the command must belong to a tree that is
// not used otherwise.
func manPage(cmd *cobra.Command, date *time.Time) ([]byte, error) {
	cmd.DisableAutoGenTag = true // the tag has a date
	cmd.SetHelpCommand(&cobra.Command{Use: "help", Hidden: true})
	// The pages are made from Markdown, in which two blanks are not an indentation.
	cmd.Long = strings.ReplaceAll(cmd.Long, "\n  ", "\n      ")
	header := &doc.GenManHeader{Section: "1", Source: "quotad", Manual: "quotad", Date: date}
	if date == nil {
		header.Date = &time.Time{}
	}
	var page bytes.Buffer
	if err := doc.GenMan(cmd, header, &page); err != nil {
		return nil, fmt.Errorf("write man page of %s: %w", cmd.CommandPath(), err)
	}
	if date == nil {
		return bytes.Replace(page.Bytes(), []byte(`"Jan 0001"`), []byte(`""`), 1), nil
	}
	return page.Bytes(), nil
}
