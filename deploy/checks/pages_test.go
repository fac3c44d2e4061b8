package checks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/quotad/quotad/cmd/quotad/serve/nodeconfig"
)

// fenced returns the block of a page about deployment that begins with a comment of this name.
func fenced(t *testing.T, page, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs/how-to", page))
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "```yaml\n# "+name+"\n")
	block, _, closed := strings.Cut(after, "\n```")
	if !found || !closed {
		t.Fatalf("%s has no block %s", page, name)
	}
	return block + "\n"
}

// TestPageOfKubernetes: the chart takes the values of the page, and quotad what it makes of them.
func TestPageOfKubernetes(t *testing.T) {
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(fenced(t, "kubernetes.md", "us-east-values.yaml")),
		&values); err != nil {
		t.Fatal(err)
	}
	values["limits"] = valuesOf(t, "private")["limits"] // --set-file
	manifests, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	o := decode(t, manifests)
	c := configured(t, o)
	checkMounts(t, o, c)
	checkPorts(t, o, c)
	if c.Region != "us-east" || c.Nodes != 2 || len(c.Seeds) != 4 {
		t.Errorf("%+v", c)
	}
}

// TestPageOfSystemd: quotad takes the node file of the page, and it is about the folders that the
// unit allows.
func TestPageOfSystemd(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "node.yaml")
	for name, text := range map[string]string{file: fenced(t, "systemd.md", "node.yaml"),
		filepath.Join(dir, "gossip.key"): "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	layers := nodeconfig.AddFlags(flags, func(string) (string, bool) { return "", false })
	if err := flags.Set("config", file); err != nil {
		t.Fatal(err)
	}
	c, err := layers.Read()
	if err != nil {
		t.Fatal(err)
	}
	if c.DataDir != "/var/lib/quotad" || c.Policy != filepath.Join(dir, "limits.yaml") ||
		len(c.Warnings()) != 0 {
		t.Errorf("%s, %s, %q", c.DataDir, c.Policy, c.Warnings())
	}
}
