package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotad/quotad/cmd/quotad/nodeconfig"
)

// TestReadmeHasEverySetting compares the README's table of settings with the settings of a node
// file.
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
	for _, s := range nodeconfig.Settings() {
		fmt.Fprintf(&want, "| `%s` | %s | %s |\n", s.Path, s.Default,
			strings.ReplaceAll(s.Usage, "|", "\\|"))
	}
	if got := table + "\n"; got != want.String() {
		t.Errorf("README.md's table of settings should be\n%s", want.String())
	}
}

// TestTheExampleIsValid: the node file in the help of serve is valid.
func TestTheExampleIsValid(t *testing.T) {
	_, text, _ := strings.Cut(serveCommand().Long, "listen:\n\n")
	text, _, _ = strings.Cut(text, "\n\n")
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "gossip.key"),
		[]byte(strings.Repeat("AAAA", 8)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "node.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := configured(file, nothingSet)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.GossipKeys) != 1 || len(c.GossipKeys[0]) != 24 || c.Region != "us-east" ||
		len(c.Seeds) != 1 || filepath.Base(c.PeerTLS.CA) != "ca.pem" {
		t.Errorf("region %s, seeds %s, keys %q, %+v", c.Region, c.Seeds, c.GossipKeys, c.PeerTLS)
	}
}
