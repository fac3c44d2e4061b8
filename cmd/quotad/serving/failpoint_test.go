package serving

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/quotad/quotad/region/rights"
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
			f, err := failpoint()
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
	fails, err := failpoint()
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
