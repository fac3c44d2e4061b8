// Command quotad enforces global limits over regions. See README.md, docs, and `quotad --help`.
//
// Each file is a command, or a part of the command after which it is named. args.go has what
// commands share. The packages below are used by several files: nodeconfig (settings), serving (a
// node in this process), remote (a node elsewhere), rehearsal, simulation, bench, authority
// (certificates), show (output for people), draw (on a terminal), exit (exit codes) and build.
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
