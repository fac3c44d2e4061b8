package serving

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/cmd/quotad/serve/nodeconfig"
	"github.com/quotad/quotad/region/trade/rights"
)

// failpointChild is set in the process that is to die.
const failpointChild = "QUOTAD_TEST_FAILPOINT_CHILD"

func TestFailpointIsRead(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "after-fsync": true, "before-debit:1": true, "after-credit:50": true,
		"nowhere": false, "after-fsync:": false, "after-fsync:0": false, "after-fsync:-1": false,
		"after-fsync:x": false, ":1": false, "After-Fsync": false,
	} {
		t.Run(text, func(t *testing.T) {
			if text != "" {
				t.Setenv(failpointVariable, text)
			}
			f, err := failpoint(&nodeconfig.Config{Chaos: true})
			if (err == nil) != want {
				t.Fatalf("%v", err)
			}
			if err != nil && (!strings.Contains(err.Error(), failpointVariable) ||
				!strings.Contains(err.Error(), string(rights.AfterFsync))) {
				t.Errorf("the error does not say where and what to write: %v", err)
			}
			if (f != nil) != (want && text != "") {
				t.Errorf("there is a failpoint: %t", f != nil)
			}
		})
	}
}

// TestFailpointNeedsChaos: the environment alone kills no node and keeps none from starting. A node
// that does not say chaos: true tells that it ignores the variable.
func TestFailpointNeedsChaos(t *testing.T) {
	warned := func(c *nodeconfig.Config) (said int) {
		d := documents.Parse(t, 1, []string{"us: {weight: 1}"}, "name: a, limit: 1, window: 1m")
		for _, w := range describe(c, d, nil, &protection{}, placement{}).warnings {
			said += strings.Count(w, failpointVariable)
		}
		return said
	}
	released, rehearses := &nodeconfig.Config{Region: "us"}, &nodeconfig.Config{Region: "us", Chaos: true}
	if n := warned(released); n != 0 {
		t.Errorf("the variable is not set, and named %d times", n)
	}
	for _, text := range []string{"after-fsync", "nowhere"} {
		t.Setenv(failpointVariable, text)
		if f, err := failpoint(released); f != nil || err != nil {
			t.Errorf("%s without chaos: there is a failpoint: %t, %v", text, f != nil, err)
		}
		if n, with := warned(released), warned(rehearses); n != 1 || with != 0 {
			t.Errorf("%s: named %d times without chaos and %d times with it, want 1 and 0", text, n, with)
		}
	}
}

// TestFailpointDies: the process dies at the given point, at the Nth pass, by kill -9, and nowhere
// else.
func TestFailpointDies(t *testing.T) {
	if os.Getenv(failpointChild) != "" {
		passByFailpoints()
	}
	for _, c := range []struct{ text, passed string }{
		{"before-debit", ""},
		{"after-fsync", "before-debit after-debit "},
		{"after-fsync:2", "before-debit after-debit after-fsync after-reply before-credit after-credit before-debit after-debit "},
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFailpointDies$")
		cmd.Env = append(os.Environ(), failpointVariable+"="+c.text, failpointChild+"=yes")
		out, err := cmd.Output()
		status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL ||
			string(out) != c.passed {
			t.Errorf("%s: it passed %q and ended with %v", c.text, out, err)
		}
	}
}

// passByFailpoints passes all points twice, as two transfers do, and prints which it passed.
func passByFailpoints() {
	fails, err := failpoint(&nodeconfig.Config{Chaos: true})
	if err != nil {
		os.Exit(1)
	}
	for range 2 {
		for _, p := range rights.Points {
			fails(p)
			_, _ = os.Stdout.WriteString(string(p) + " ")
		}
	}
	os.Exit(0)
}
