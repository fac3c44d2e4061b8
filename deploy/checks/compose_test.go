package checks

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/cmd/quotad/serve/nodeconfig"
)

// regionsFolder has the three regions of the Compose file.
const regionsFolder = "../multi-region"

func loadCompose(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(regionsFolder, "compose.yaml")},
		cli.WithWorkingDirectory(regionsFolder), cli.WithResolvedPaths(true))
	suite.Must(t, err)
	p, err := options.LoadProject(t.Context())
	suite.Must(t, err)
	return p
}

// TestComposeLoads: Compose's own loader takes the file. What it mounts and builds from is there,
// and what services name exists.
func TestComposeLoads(t *testing.T) {
	p := loadCompose(t)
	if p.Name != "quotad" || len(p.Services) != 6 {
		t.Errorf("project %s has %d services", p.Name, len(p.Services))
	}
	for name, s := range p.Services {
		if s.HealthCheck == nil || s.HealthCheck.Timeout == nil || s.Restart == "" {
			t.Errorf("%s has no health check, or is not started again", name)
		}
		for _, v := range s.Volumes {
			switch v.Type {
			case types.VolumeTypeBind:
				if _, err := os.Stat(v.Source); err != nil || !v.ReadOnly {
					t.Errorf("%s mounts %s, read-only %v: %v", name, v.Source, v.ReadOnly, err)
				}
			case types.VolumeTypeVolume:
				if _, known := p.Volumes[v.Source]; !known {
					t.Errorf("%s mounts the volume %s, which is not there", name, v.Source)
				}
			}
		}
		for network := range s.Networks {
			if _, known := p.Networks[network]; !known {
				t.Errorf("%s is in the network %s, which is not there", name, network)
			}
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %s at %q", name, port.Published, port.HostIP)
			}
		}
	}
}

// TestComposeNodes: each node is built from the Containerfile, waits for its Redis, says with a
// command of quotad whether it is well, and is given time to end.
func TestComposeNodes(t *testing.T) {
	p := loadCompose(t)
	nodes := 0
	for name, s := range p.Services {
		if s.Build == nil {
			continue
		}
		nodes++
		file := filepath.Join(s.Build.Context, s.Build.Dockerfile)
		if want, _ := filepath.Abs("../Containerfile"); file != want {
			t.Errorf("%s is built from %s, want %s", name, file, want)
		}
		if d := s.DependsOn[name+"-redis"]; len(s.DependsOn) != 1 ||
			d.Condition != types.ServiceConditionHealthy {
			t.Errorf("%s waits for %+v", name, s.DependsOn)
		}
		if test := s.HealthCheck.Test; len(test) < 3 || test[0] != "CMD" || test[1] != "/quotad" ||
			test[2] != "status" {
			t.Errorf("%s is well if %q", name, test)
		}
		if !s.ReadOnly || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") || s.Privileged {
			t.Errorf("%s has rights that it does not need", name)
		}
		if drain := defaultDrain(t); s.StopGracePeriod == nil ||
			time.Duration(*s.StopGracePeriod) < drain+leaveTime+5*time.Second {
			t.Errorf("%s has %v to end", name, s.StopGracePeriod)
		}
		for variable := range s.Environment {
			if !slices.ContainsFunc(nodeconfig.Settings(),
				func(s nodeconfig.Setting) bool { return s.Variable() == variable }) {
				t.Errorf("%s sets %s, which is no setting", name, variable)
			}
		}
	}
	if nodes != 3 {
		t.Errorf("there are %d nodes", nodes)
	}
}

// defaultDrain is the default of drain_timeout.
func defaultDrain(t *testing.T) time.Duration {
	t.Helper()
	for _, s := range nodeconfig.Settings() {
		if s.Path == "drain_timeout" {
			d, err := time.ParseDuration(s.Default)
			suite.Must(t, err)
			return d
		}
	}
	t.Fatal("there is no setting drain_timeout")
	return 0
}

var instruction = regexp.MustCompile(`(?m)^([A-Z]+) (.*)$`)

// TestContainerfile: the image is the static binary of the Go version that the module asks for, for
// a user without rights, and has the ports on which nodes listen.
func TestContainerfile(t *testing.T) {
	text, err := os.ReadFile("../Containerfile")
	suite.Must(t, err)
	module, err := os.ReadFile("../../go.mod")
	suite.Must(t, err)
	got := map[string][]string{}
	for _, m := range instruction.FindAllStringSubmatch(string(text), -1) {
		got[m[1]] = append(got[m[1]], m[2])
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(module))[1]
	if want := []string{"golang:" + version + " AS build", "scratch"}; !slices.Equal(got["FROM"],
		want) {
		t.Errorf("FROM %q, want %q", got["FROM"], want)
	}
	if !strings.Contains(strings.Join(got["RUN"], "\n"), "CGO_ENABLED=0 go build") ||
		!slices.Equal(got["ENTRYPOINT"], []string{`["/quotad"]`}) ||
		!slices.Equal(got["USER"], []string{"65532:65532"}) {
		t.Errorf("%q", got)
	}
	exposed := strings.Fields(strings.Join(got["EXPOSE"], " "))
	for _, s := range nodeconfig.Settings() {
		_, port, _ := strings.Cut(s.Default, ":")
		if s.Kind == "host:port" && s.Default != "" && !slices.Contains(exposed, port) {
			t.Errorf("%s is not exposed: %q", s.Path, exposed)
		}
	}
}
