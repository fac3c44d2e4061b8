// Hunt builds mutants and lets the simulator look for them. Each must break an invariant within its
// number of seeds, or fail its test. It hunts the named mutants, or all, and prints a table.
//
// Exit codes: 0 all were found, 2 bad usage or a mutant that does not build, 3 one was not found.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/quotad/quotad/chaos/mutants"
)

const (
	exitUsage  = 2
	exitBroken = 3
)

func main() {
	dir := flag.String("dir", ".", "the module's directory")
	seeds := flag.Int("seeds", 0, "how many seeds to run of each; 0: as many as the mutant says")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	found, err := hunt(ctx, *dir, *seeds, flag.Args())
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitUsage)
	case !found:
		os.Exit(exitBroken)
	}
}

// hunt hunts the named mutants, or all if there are no names. It reports whether all of them were
// found.
func hunt(ctx context.Context, dir string, seeds int, names []string) (bool, error) {
	all, err := mutants.All()
	if err != nil {
		return false, err
	}
	if len(names) > 0 {
		all = nil
		for _, name := range names {
			m, err := mutants.Find(name)
			if err != nil {
				return false, err
			}
			all = append(all, m)
		}
	}
	scratch, err := os.MkdirTemp("", "quotad-hunt-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(scratch)
	fmt.Println("| mutant | found by | of | in | what broke |\n| --- | --- | --- | --- | --- |")
	ok := true
	for _, m := range all {
		begun := time.Now()
		f, err := one(ctx, m, dir, filepath.Join(scratch, m.Name), seeds)
		took := time.Since(begun).Round(time.Second)
		switch {
		case errors.Is(err, mutants.ErrNotFound):
			ok = false
			fmt.Printf("| %s | NOT FOUND | %s | %v | should break %s |\n", m.Name, f.of, took, m.Breaks)
		case err != nil:
			return false, err
		default:
			fmt.Printf("| %s | %s | %s | %v | %s |\n", m.Name, f.by, f.of, took, f.what)
		}
	}
	return ok, nil
}

// finding says how a mutant was found.
type finding struct{ by, of, what string }

// one hunts one mutant, with seeds of its simulator or with its test.
func one(ctx context.Context, m mutants.Mutant, dir, binary string, seeds int) (finding, error) {
	if m.Test.Name != "" {
		what, err := m.Fails(ctx, dir)
		return finding{"a test", m.Test.Package, what}, err
	}
	if err := m.Build(ctx, dir, "./chaos/mutants/seeds", binary); err != nil {
		return finding{}, err
	}
	most := cmp.Or(seeds, m.Within)
	seed, what, err := m.Run(ctx, binary, most)
	return finding{fmt.Sprintf("seed %d", seed), fmt.Sprintf("%d", most), what}, errors.Join(err, os.Remove(binary))
}
