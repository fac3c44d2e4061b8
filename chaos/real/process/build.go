package process

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// Build builds quotad into a folder, without what debuggers read, and returns the path of the
// binary. The working directory must lie in quotad's module, as it does in its tests.
func Build(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "quotad")
	out, err := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", path,
		"github.com/quotad/quotad/cmd/quotad").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build quotad: %w: %s", err, out)
	}
	return path, nil
}
