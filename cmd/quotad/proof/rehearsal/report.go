package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/quotad/quotad/chaos/real/report"
	"github.com/quotad/quotad/chaos/real/scenario"
)

// writeReport writes the page about a rehearsal.
func (r *Rehearsal) writeReport(ctx context.Context, record *scenario.Record,
	results []scenario.Result) error {
	f, err := os.Create(r.ReportTo)
	if err != nil {
		return fmt.Errorf("write the report: %w; choose another file with --report", err)
	}
	err = report.Write(f, r.Report(record, results, r.Command, r.version(ctx)))
	return errors.Join(err, f.Close())
}

// versionTimeout bounds how long a binary may take to print its version.
const versionTimeout = 10 * time.Second

// version returns the version that the binary under test prints, or its path.
func (r *Rehearsal) version(ctx context.Context) string {
	path, err := filepath.Abs(r.Quotad) // a bare name would be looked for in PATH
	if err != nil {
		return r.Quotad
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "version").Output()
	if err != nil {
		return path // an older binary may not have the command
	}
	// The page says already that it is quotad's version.
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "quotad ")
}
