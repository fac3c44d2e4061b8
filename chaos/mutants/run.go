package mutants

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ErrNotFound says that no seed of the simulator broke an invariant.
var ErrNotFound = errors.New("no seed broke an invariant")

// brokenCode is the exit code of a simulator that found a violation.
const brokenCode = 3

// Run runs the simulator of a built mutant, such as chaos/mutants/seeds, on so many seeds. It
// returns the seed that broke an invariant, and the violation. The error is ErrNotFound, or quotes
// the simulator.
func (m Mutant) Run(ctx context.Context, binary string, seeds int) (seed uint64, violation string, err error) {
	args := slices.Concat([]string{"--seeds", strconv.Itoa(seeds), "--lua-every", "0"}, m.Flags)
	said, err := exec.CommandContext(ctx, binary, args...).Output()
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0, "", fmt.Errorf("mutant %s, %d seeds: %w: the simulator is blind to it, or the rule is not needed", m.Name, seeds, ErrNotFound)
	case !errors.As(err, &ended) || ended.ExitCode() != brokenCode:
		return 0, "", fmt.Errorf("mutant %s: run its simulator: %w\n%s", m.Name, err, stderrOf(ended))
	}
	number, violation, _ := strings.Cut(strings.TrimSpace(string(said)), " ")
	seed, err = strconv.ParseUint(number, 10, 64)
	if err == nil && !regexp.MustCompile(m.Says).MatchString(violation) {
		err = fmt.Errorf("mutant %s, seed %d: %w: it does not say %q: %s", m.Name, seed, ErrNotFound, m.Says, violation)
	}
	return seed, violation, err
}

// Fails runs the mutant's Test and returns the line that says what must be found. The error is
// ErrNotFound if the test passes, or fails for another reason; otherwise it says why the test could
// not be run.
func (m Mutant) Fails(ctx context.Context, moduleDir string) (string, error) {
	said, err := m.overlaid(ctx, moduleDir, "test", "-count", "1", "-failfast", "-run", "^"+m.Test.Name+"$", m.Test.Package)
	if err == nil {
		return "", fmt.Errorf("mutant %s, %s of %s: %w: the test is blind to it, or the rule is not needed", m.Name, m.Test.Name, m.Test.Package, ErrNotFound)
	}
	if !strings.Contains(string(said), "--- FAIL: "+m.Test.Name) {
		return "", fmt.Errorf("mutant %s: run %s of %s: %w\n%s", m.Name, m.Test.Name, m.Test.Package, err, said)
	}
	judged := judgement(string(said), regexp.MustCompile(m.Says))
	if judged == "" {
		return "", fmt.Errorf("mutant %s, %s of %s: %w: it fails, but does not say %q\n%s", m.Name, m.Test.Name, m.Test.Package, ErrNotFound, m.Says, said)
	}
	return m.Test.Name + ": " + judged, nil
}

var (
	// message is what a test says with t.Error and the like, or how it panics.
	message = regexp.MustCompile(`^ +[a-z0-9_]+_test\.go:[0-9]+: (.+)|^(panic: .+)`)
	// seenTooLittle is in the messages of tests that could not judge.
	seenTooLittle = regexp.MustCompile(`shows? nothing|too few to|worth searching|never had more than|never more than|neither could borrow`)
)

// judgement returns the first message of a failed test that says what must be found; "" if there is
// none.
func judgement(said string, says *regexp.Regexp) string {
	for line := range strings.Lines(said) {
		found := message.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if found != nil && says.MatchString(found[1]+found[2]) && !seenTooLittle.MatchString(line) {
			return found[1] + found[2]
		}
	}
	return ""
}

// stderrOf returns the end of what a command wrote to stderr.
func stderrOf(ended *exec.ExitError) []byte {
	if ended == nil {
		return nil
	}
	return ended.Stderr
}
