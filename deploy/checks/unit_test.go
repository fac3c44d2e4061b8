package checks

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// maxExposure bounds what systemd-analyze says of the unit, from 0 (nothing is allowed) to 10.
const maxExposure = 1.1

var exposure = regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`)

// TestUnit: systemd takes the unit without a warning, and finds it closed. The binary in it is
// replaced, for quotad is not installed where this runs.
func TestUnit(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	text, err := os.ReadFile(filepath.Join(regionsFolder, "quotad.service"))
	suite.Must(t, err)
	const binary = "ExecStart=/usr/bin/quotad "
	if strings.Count(string(text), binary) != 1 {
		t.Fatalf("the unit does not start /usr/bin/quotad")
	}
	unit := filepath.Join(t.TempDir(), "quotad.service")
	text = bytes.Replace(text, []byte(binary), []byte("ExecStart=/bin/true "), 1)
	suite.Must(t, os.WriteFile(unit, text, 0o600))
	// It exits with 0 whatever it says.
	if out, err := exec.Command("systemd-analyze", "verify", unit).CombinedOutput(); err != nil ||
		len(out) > 0 {
		t.Errorf("verify: %v\n%s", err, out)
	}
	out, err := exec.Command("systemd-analyze", "security", "--offline=true", unit).CombinedOutput()
	if err != nil {
		t.Fatalf("security: %v\n%s", err, out)
	}
	m := exposure.FindSubmatch(out)
	if m == nil {
		t.Fatalf("security says no level:\n%s", out)
	}
	level, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil || level > maxExposure {
		t.Errorf("the exposure is %v, at most %v is wanted", level, maxExposure)
	}
	t.Logf("exposure %v", level)
}
