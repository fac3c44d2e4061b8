package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestTheExampleIsValid: the node file in the help of serve is valid.
func TestTheExampleIsValid(t *testing.T) {
	_, text, _ := strings.Cut(serveCommand().Long, "listen:\n\n")
	text, _, _ = strings.Cut(text, "\n\n")
	folder := t.TempDir()
	suite.Must(t, os.WriteFile(filepath.Join(folder, "gossip.key"),
		[]byte(strings.Repeat("BBBB", 8)+"\n"), 0o600))
	file := filepath.Join(folder, "node.yaml")
	suite.Must(t, os.WriteFile(file, []byte(text), 0o600))
	cmd := &cobra.Command{}
	settings := settingFlags(cmd)
	suite.Must(t, cmd.Flags().Set("config", file))
	c, err := settings.Read()
	suite.Must(t, err)
	if len(c.GossipKeys) != 1 || len(c.GossipKeys[0]) != 24 || c.Region != "us-east" ||
		len(c.Seeds) != 1 || filepath.Base(c.PeerTLS.CA) != "ca.pem" {
		t.Errorf("region %s, seeds %s, keys %q, %+v", c.Region, c.Seeds, c.GossipKeys, c.PeerTLS)
	}
}
