package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quotad/quotad/chaos/lab/collector"
	"github.com/quotad/quotad/chaos/lab/redisserver"
	"github.com/quotad/quotad/chaos/lab/suite"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"quotad": main})
}

// TestScripts runs testdata/*.txtar: what a user types and what the output is. The commands are
// those of testscript and of the functions below.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition: func(named string) (bool, error) {
			if named != "race" {
				return false, fmt.Errorf("the condition %q is not known", named)
			}
			return suite.Race, nil
		},
		Setup: func(env *testscript.Env) error {
			// Otherwise a race detector delays the end of every process by a second.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			if path, err := redisserver.Path(); err == nil { // a script that needs it fails without
				env.Setenv(redisserver.Variable, path)
			}
			env.Values[collectorKey{}] = new(*collector.Collector)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"ports": scriptPorts, "exits": scriptExits, "eventually": scriptEventually,
			"await": scriptAwait, "signal": scriptSignal,
			"capture": scriptCapture, "drains": scriptDrains, "asks": scriptAsks,
			"collect": scriptCollect, "spans": scriptSpans,
		},
	})
}

// The ports are below those that systems use for outgoing connections, so that none is taken
// between the check and the use.
const (
	firstPort = 12_000
	manyPorts = 18_000
)

var nextPort atomic.Uint32

func init() { nextPort.Store(rand.Uint32N(manyPorts)) }

// scriptPorts: "ports A B" sets $A and $B to different ports that are free for TCP and UDP.
func scriptPorts(ts *testscript.TestScript, neg bool, names []string) {
	if neg || len(names) == 0 {
		ts.Fatalf("usage: ports NAME...")
	}
	for _, name := range names {
		port := ""
		for tries := 0; port == ""; tries++ {
			if tries == manyPorts {
				ts.Fatalf("no port is free")
			}
			port = strconv.Itoa(firstPort + int(nextPort.Add(1)%manyPorts))
			if !free(port) {
				port = ""
			}
		}
		ts.Setenv(name, port)
	}
}

func free(port string) bool {
	at := net.JoinHostPort("127.0.0.1", port)
	l, err := net.Listen("tcp", at)
	if err != nil {
		return false
	}
	defer l.Close()
	p, err := net.ListenPacket("udp", at)
	if err != nil {
		return false
	}
	return p.Close() == nil
}

// scriptExits: "exits 4 quotad check ..." runs a command that must end with this exit code.
func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	code, command := codeAndCommand(ts, neg, args)
	if got := exitCode(ts, command); got != code {
		ts.Fatalf("exit code %d, want %d", got, code)
	}
}

// scriptEventually: "eventually 0 quotad check ..." runs a command again and again until it ends
// with this exit code.
func scriptEventually(ts *testscript.TestScript, neg bool, args []string) {
	code, command := codeAndCommand(ts, neg, args)
	repeat(ts, func() error {
		if got := exitCode(ts, command); got != code {
			return fmt.Errorf("exit code %d, want %d", got, code)
		}
		return nil
	})
}

func codeAndCommand(ts *testscript.TestScript, neg bool, args []string) (int, []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits|eventually CODE COMMAND [ARGUMENT]...")
	}
	code, err := strconv.Atoi(args[0])
	ts.Check(err)
	return code, args[1:]
}

func exitCode(ts *testscript.TestScript, command []string) int {
	err := ts.Exec(command[0], command[1:]...)
	var exited *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exited):
		return exited.ExitCode()
	}
	ts.Check(err)
	return -1
}

// scriptAwait: "await URL [PATTERN]" waits until the URL answers 200 with a body that the pattern
// matches.
func scriptAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: await URL [PATTERN]")
	}
	pattern := regexp.MustCompile("")
	if len(args) == 2 {
		var err error
		pattern, err = regexp.Compile(args[1])
		ts.Check(err)
	}
	repeat(ts, func() error {
		response, err := http.Get(args[0])
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK || !pattern.Match(body) {
			return fmt.Errorf("%s %s: no match of %q in %s", args[0], response.Status, pattern,
				body)
		}
		return nil
	})
}

// repeat tries until there is no error, at most for suite.Patience.
func repeat(ts *testscript.TestScript, try func() error) {
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	enough := time.After(suite.Patience)
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-again.C:
		case <-enough:
			ts.Fatalf("still after %s: %v", suite.Patience, err)
		}
	}
}

// scriptCapture: "capture NAME PATTERN" sets $NAME to what the parentheses of the pattern match in
// the last stdout.
func scriptCapture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture NAME PATTERN")
	}
	found := regexp.MustCompile("(?m)" + args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) != 2 {
		ts.Fatalf("no match of %q", args[1])
	}
	ts.Setenv(args[0], found[1])
}

// scriptSignal: "signal HUP|TERM" signals all background commands.
func scriptSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{"HUP": syscall.SIGHUP, "TERM": syscall.SIGTERM}
	if neg || len(args) != 1 || signals[args[0]] == 0 {
		ts.Fatalf("usage: signal HUP|TERM")
	}
	for _, c := range ts.BackgroundCmds() {
		ts.Check(c.Process.Signal(signals[args[0]]))
	}
}
