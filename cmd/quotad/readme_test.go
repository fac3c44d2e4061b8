package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadmeHasEverySetting holds the README's table of settings to what a node file may say.
func TestReadmeHasEverySetting(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	const head = "| setting | default | what it says |\n|---|---|---|\n"
	_, after, found := strings.Cut(string(text), head)
	if !found {
		t.Fatalf("README.md has no table that begins with\n%s", head)
	}
	table, _, _ := strings.Cut(after, "\n\n")
	var want strings.Builder
	for _, s := range settings {
		fmt.Fprintf(&want, "| `%s` | %s | %s |\n", s.path, s.fallback, strings.ReplaceAll(s.usage, "|", "\\|"))
	}
	if got := table + "\n"; got != want.String() {
		t.Errorf("README.md's table of settings should be\n%s", want.String())
	}
}
