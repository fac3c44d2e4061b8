// Command quotad enforces global limits over regions. See README.md, docs, and `quotad --help`.
//
// The commands are in three groups, none of which imports another: serve runs nodes, operate is about
// nodes that run, and proof shows that the promise holds. They share command (arguments and flags),
// exit (exit codes), show (output for people), draw (on a terminal) and build. Here is what is about
// all commands: the root and completion (root.go), man pages (man.go), the version (version.go), and
// where commands of before went (moved.go).
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
