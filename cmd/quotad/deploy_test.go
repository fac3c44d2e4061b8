package main

import (
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/spf13/pflag"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/real/scenario"
	"github.com/quotad/quotad/chaos/real/staging"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/serve/nodeconfig"
	"github.com/quotad/quotad/cmd/quotad/serve/serving"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/front/roles"
	"github.com/quotad/quotad/region/memory/store"
)

// deployed is the folder of the deployment whose files must agree.
const deployed = "../../deploy/multi-region"

var deployedRegions = []string{"us-east", "eu-west", "ap-south"}

func readDeployed(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(deployed, name))
	suite.Must(t, err)
	return string(b)
}

// keyed is a copy of the deployment with the keys and certificates that its keys.sh makes.
func keyed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	suite.Must(t, os.CopyFS(dir, os.DirFS(deployed)))
	own, err := os.Executable()
	suite.Must(t, err)
	// Under this name the test binary is the command: see TestMain.
	quotad := filepath.Join(t.TempDir(), "quotad")
	suite.Must(t, os.Symlink(own, quotad))
	cmd := exec.Command(filepath.Join(dir, "keys.sh"))
	cmd.Env = append(os.Environ(), "QUOTAD="+quotad)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("keys.sh: %v\n%s", err, out)
	}
	return dir
}

// configured reads the settings of a node as quotad serve does, from a node file and the variables
// of an environment.
func configured(file string, environment func(string) (string, bool)) (*nodeconfig.Config, error) {
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	settings := nodeconfig.AddFlags(flags, environment)
	if err := flags.Set("config", file); err != nil {
		return nil, err
	}
	return settings.Read()
}

func nothingSet(string) (string, bool) { return "", false }

func TestDeployedNodeFilesAndLimitsGoTogether(t *testing.T) {
	dir := keyed(t)
	for _, name := range deployedRegions {
		c, err := configured(filepath.Join(dir, name+".yaml"), nothingSet)
		suite.Must(t, err)
		d, err := policy.Load(c.Policy)
		suite.Must(t, err)
		if err := c.CheckRegion(d); err != nil || c.Region != name {
			t.Errorf("%s.yaml is of region %q: %v", name, c.Region, err)
		}
		if len(d.Regions) != len(deployedRegions) {
			t.Errorf("the limits document has %d regions", len(d.Regions))
		}
		if trust, err := serving.LoadPeerTLS(c, slog.New(slog.DiscardHandler)); err != nil ||
			trust == nil {
			t.Errorf("%s has no certificate for calls between regions: %v", name, err)
		}
		if len(c.GossipKeys) != 1 || len(c.GossipKeys[0]) != 256/8 || c.Insecure != (nodeconfig.Insecure{}) {
			t.Errorf("%s has %d keys of gossip, and is insecure: %v", name, len(c.GossipKeys),
				c.Insecure)
		}
	}
}

// TestDeployedNodesFile: the nodes file says the same about each node as the node's own file.
func TestDeployedNodesFile(t *testing.T) {
	dir := keyed(t)
	nodes, err := staging.ReadNodes(filepath.Join(dir, "nodes.yaml"))
	suite.Must(t, err)
	if len(nodes.Regions) != len(deployedRegions) {
		t.Errorf("it has %d regions", len(nodes.Regions))
	}
	for _, r := range nodes.Regions {
		c, err := configured(filepath.Join(dir, r.Name+".yaml"), nothingSet)
		if err != nil {
			t.Error(err)
			continue
		}
		want := []staging.Node{{Name: c.Node, HTTP: c.Listen.HTTP.String(),
			Admin: c.Listen.Admin.String()}}
		if !slices.Equal(r.Nodes, want) || !c.Chaos {
			t.Errorf("%s: %+v, want %+v, with chaos: %v", r.Name, r.Nodes, want, c.Chaos)
		}
	}
}

// TestDeployedRoles: the example has a caller of each role, and is of no use to whoever reads it.
func TestDeployedRoles(t *testing.T) {
	callers, err := roles.Parse("roles.yaml", []byte(readDeployed(t, "roles.yaml")))
	if err != nil || callers.Count() != len(roles.Roles()) {
		t.Errorf("%v, %v", callers, err)
	}
	for _, role := range roles.Roles() {
		if !strings.Contains(readDeployed(t, "roles.yaml"), "roles: ["+string(role)+"]") {
			t.Errorf("nobody has the role %s", role)
		}
	}
}

// TestDeployedRehearsal: the rehearsal is about the regions and limits of the deployment, and needs
// only cuts.
func TestDeployedRehearsal(t *testing.T) {
	s, err := scenario.Parse("rehearsal.yaml", []byte(readDeployed(t, "rehearsal.yaml")))
	suite.Must(t, err)
	nodes, err := staging.ReadNodes(filepath.Join(keyed(t), "nodes.yaml"))
	suite.Must(t, err)
	stage, err := staging.Open(nodes, s.Duration)
	suite.Must(t, err)
	defer stage.Close()
	suite.Must(t, s.Impossible(stage))
	d, err := policy.Load(filepath.Join(deployed, "limits.yaml"))
	suite.Must(t, err)
	for _, r := range d.Regions {
		if !slices.Contains(s.Regions, scenario.Region{Name: r.Name, Weight: r.Weight, Nodes: 1}) ||
			len(s.Regions) != len(d.Regions) {
			t.Errorf("the regions are %+v, and region %s has weight %d", s.Regions, r.Name,
				r.Weight)
		}
	}
	for _, b := range s.Watched() {
		l := d.Limits[0]
		if b.Limit != l.Name || quantity.Units(b.Units) != l.Limit || b.Window != l.Window ||
			b.Algorithm != string(l.Algorithm) {
			t.Errorf("%+v is not the limit of the deployment, %+v", b, l)
		}
	}
}

func TestDeployedRedisUserMayDoWhatQuotadDoes(t *testing.T) {
	rules := strings.Fields(store.MinimalACL + " >change-me")
	slices.Sort(rules)
	for file, before := range map[string]string{"redis-users.acl": "user quotad ",
		"README.md": "ACL SETUSER quotad "} {
		_, after, ok := strings.Cut(readDeployed(t, file), before)
		line, _, _ := strings.Cut(after, "\n")
		got := strings.Fields(line)
		slices.Sort(got)
		if !ok || !slices.Equal(got, rules) {
			t.Errorf("%s has the rules %q\nwant %q", file, got, rules)
		}
	}
}

func TestDeployedUnit(t *testing.T) {
	unit := map[string][]string{}
	section := ""
	for _, line := range strings.Split(readDeployed(t, "quotad.service"), "\n") {
		switch key, value, ok := strings.Cut(line, "="); {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		case !ok || strings.TrimSpace(key) != key:
			t.Errorf("%q is not key=value", line)
		default:
			unit[section+"."+key] = append(unit[section+"."+key], value)
		}
	}
	for key, want := range map[string]string{
		"Service.Type":            "exec",
		"Service.ExecReload":      "/bin/kill -HUP $MAINPID",
		"Service.NoNewPrivileges": "true",
		"Service.ProtectSystem":   "strict",
		"Install.WantedBy":        "multi-user.target",
		// A wrong configuration would only be tried again here.
		"Service.RestartPreventExitStatus": "2",
	} {
		if !slices.Equal(unit[key], []string{want}) {
			t.Errorf("%s is %q, want %q", key, unit[key], want)
		}
	}
	start := strings.Fields(strings.Join(unit["Service.ExecStart"], " "))
	cmd, rest, err := newRoot(io.Discard).Find(start[1:])
	if err != nil || cmd.Name() != "serve" || cmd.ParseFlags(rest) != nil {
		t.Errorf("ExecStart %q is no command of quotad: %v", start, err)
	}
	if unit["Unit.Description"] == nil || exit.BadUsage != 2 {
		t.Error("the unit has no description, or exit codes have changed")
	}
}

// TestDeployedContainers reads what can be read of the compose file without a container engine.
func TestDeployedContainers(t *testing.T) {
	var compose struct {
		Services map[string]struct {
			Command     []string          `yaml:"command"`
			Environment map[string]string `yaml:"environment"`
			Volumes     []string          `yaml:"volumes"`
			DependsOn   map[string]any    `yaml:"depends_on"`
		} `yaml:"services"`
		Volumes map[string]any `yaml:"volumes"`
	}
	suite.Must(t, yaml.Unmarshal([]byte(readDeployed(t, "compose.yaml")), &compose))
	if len(compose.Services) != 2*len(deployedRegions) {
		t.Errorf("there are %d services", len(compose.Services))
	}
	for name, service := range compose.Services {
		for _, word := range service.Command {
			if file, ok := strings.CutPrefix(word, "/etc/quotad/"); ok {
				readDeployed(t, file)
			}
		}
		for _, volume := range append(service.Volumes, ".:") {
			if from, _, _ := strings.Cut(volume, ":"); from != "." {
				if _, known := compose.Volumes[from]; !known {
					t.Errorf("%s mounts the volume %s, which is not there", name, from)
				}
			}
		}
		for other := range service.DependsOn {
			if _, known := compose.Services[other]; !known {
				t.Errorf("%s depends on %s, which is not there", name, other)
			}
		}
	}
	dir := keyed(t)
	for _, name := range deployedRegions {
		set := compose.Services[name].Environment
		c, err := configured(filepath.Join(dir, name+".yaml"), func(variable string) (string,
			bool) {
			text, ok := set[variable]
			return text, ok
		})
		if err != nil {
			t.Errorf("the node of %s: %v", name, err)
			continue
		}
		// The network of the containers is private, and its ports are published on loopback alone.
		if c.Insecure != (nodeconfig.Insecure{API: true}) || !c.Listen.Admin.Addr().IsLoopback() {
			t.Errorf("the node of %s is insecure: %+v, with its admin listener at %s", name,
				c.Insecure, c.Listen.Admin)
		}
		if c.Redis.URL != "redis://quotad:change-me@"+name+"-redis:6379/0" ||
			c.Advertise.Peer != name+":8082" || !slices.Contains(c.Seeds, c.Advertise.Gossip) {
			t.Errorf("the node of %s has the Redis %s and is found at %s and %s", name, c.Redis.URL,
				c.Advertise.Peer, c.Advertise.Gossip)
		}
		for variable := range set {
			if !slices.ContainsFunc(nodeconfig.Settings(),
				func(s nodeconfig.Setting) bool { return s.Variable() == variable }) {
				t.Errorf("the node of %s sets %s, which is no setting", name, variable)
			}
		}
	}
}

// TestDeployedReadmeNamesItsFiles: the README names all files of the deployment, and none that does
// not exist.
func TestDeployedReadmeNamesItsFiles(t *testing.T) {
	table := readDeployed(t, "README.md")
	entries, err := os.ReadDir(deployed)
	suite.Must(t, err)
	for _, e := range entries {
		if e.Name() != "README.md" && !strings.Contains(table, "`"+e.Name()+"`") {
			t.Errorf("README.md says nothing of %s", e.Name())
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*`) \\|").FindAllStringSubmatch(table, -1) {
		for _, name := range strings.Split(row[1], ", ") {
			readDeployed(t, strings.Trim(name, "`"))
		}
	}
	for _, line := range regexp.MustCompile(
		`(?m)^ +(quotad (?:cut|chaos|keys).*)$`).FindAllStringSubmatch(table, -1) {
		text, _, _ := strings.Cut(line[1], "#")
		root := newRoot(io.Discard)
		cmd, rest, err := root.Find(strings.Fields(text)[1:])
		if err != nil || cmd.Hidden || cmd.HasSubCommands() || cmd.ParseFlags(rest) != nil {
			t.Errorf("%q is no command of quotad: %v", text, err)
		}
	}
}
