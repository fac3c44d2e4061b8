package checks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/cmd/quotad/serve/nodeconfig"
)

// fenced returns the block of a page about deployment that begins with a comment of this name.
func fenced(t *testing.T, page, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs/how-to", page))
	suite.Must(t, err)
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
	suite.Must(t, yaml.Unmarshal([]byte(fenced(t, "kubernetes.md", "us-east-values.yaml")),
		&values))
	values["limits"] = valuesOf(t, "private")["limits"] // --set-file
	manifests, err := render(t, values)
	suite.Must(t, err)
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
		suite.Must(t, os.WriteFile(name, []byte(text), 0o600))
	}
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	layers := nodeconfig.AddFlags(flags, func(string) (string, bool) { return "", false })
	suite.Must(t, flags.Set("config", file))
	c, err := layers.Read()
	suite.Must(t, err)
	if c.DataDir != "/var/lib/quotad" || c.Policy != filepath.Join(dir, "limits.yaml") ||
		len(c.Warnings()) != 0 {
		t.Errorf("%s, %s, %q", c.DataDir, c.Policy, c.Warnings())
	}
}
