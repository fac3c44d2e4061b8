//go:build !race

package process

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestMultiRegionScript runs deploy/multi-region/up.sh as a user would, on its own addresses. It
// checks the output as well as the exit code.
func TestMultiRegionScript(t *testing.T) {
	block, err := reserve(t)
	suite.Must(t, err)
	cmd := exec.CommandContext(t.Context(), "../../../deploy/multi-region/up.sh")
	cmd.Env = append(os.Environ(), "QUOTAD="+binary(t), fmt.Sprintf("NET=127.%d", block))
	// The script must be able to end what it started.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = suite.Patience
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// What a starved node had no time for the script asks again, and says so.
	out = regexp.MustCompile(`(?m)^quotad: .*\n`).ReplaceAll(out, nil)
	for _, want := range []string{
		`(?m)^start +three regions, one limit: 100 units in 2s for account 42, split 40/40/20$`,
		`(?m)^skew .*\n +us-east +fixed split +40, share +[0-9]+$`,
		`(?m)^cut .*\n +us-east +fixed split +40, share +40\n +eu-west .*\n +ap-south .*$`,
		`(?m)^heal .*\n +us-east +fixed split +40, share +[0-9]+$`,
		`(?m)^ok +[0-9]+ windows, at most ([1-9][0-9]?|100) of 100 units admitted in one, 0 requests unanswered$`,
	} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("no match of %q", want)
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
	wantNobody(t, block)
}

// wantNobody checks that what the script started has ended.
func wantNobody(t *testing.T, block byte) {
	t.Helper()
	for region := range 3 {
		for _, port := range []int{6379, 7946, 8080, 8081, 8082, 8083} {
			at := fmt.Sprintf("127.%d.%d.11:%d", block, region, port)
			if c, err := net.Dial("tcp", at); err == nil {
				_ = c.Close()
				t.Errorf("something still listens on %s", at)
			}
		}
	}
}

// TestMultiRegionScriptFails: on failure the script ends with exit code 1, and leaves nothing
// behind.
func TestMultiRegionScriptFails(t *testing.T) {
	block, err := reserve(t)
	suite.Must(t, err)
	temporary := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "../../../deploy/multi-region/up.sh")
	cmd.Env = append(os.Environ(), "QUOTAD=/does/not/exist", fmt.Sprintf("NET=127.%d", block),
		"TMPDIR="+temporary)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("%v\n%s", err, out)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v behind, %v", left, err)
	}
}
