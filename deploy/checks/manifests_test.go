package checks

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/cmd/quotad/serve/nodeconfig"
	"github.com/quotad/quotad/policy"
)

func newReader(text string) *bufio.Reader { return bufio.NewReader(strings.NewReader(text)) }

// leaveTime is how long a node may take after drain_timeout, by cmd/quotad/serve/serving.
const leaveTime = 5 * time.Second

// environment returns the variables of a container, as they are in the pod name-0.
func environment(t *testing.T, o objects) map[string]string {
	t.Helper()
	own := map[string]string{"metadata.name": o.set.Name + "-0", "status.podIP": "10.8.0.7"}
	set := map[string]string{}
	for _, e := range o.set.Spec.Template.Spec.Containers[0].Env {
		switch from := e.ValueFrom; {
		case from == nil:
			text := e.Value
			for name, value := range set {
				text = strings.ReplaceAll(text, "$("+name+")", value)
			}
			set[e.Name] = text
		case from.FieldRef != nil:
			set[e.Name] = own[from.FieldRef.FieldPath]
		case from.SecretKeyRef != nil && e.Name == "QUOTAD_REDIS_URL":
			set[e.Name] = "redis://quotad:secret@redis:6379/0"
			if hasMount(o, "/etc/quotad/redis-ca") {
				set[e.Name] = "rediss://quotad:secret@redis:6379/0"
			}
		default:
			t.Errorf("variable %s comes from elsewhere", e.Name)
		}
		if strings.Contains(set[e.Name], "$(") {
			t.Errorf("variable %s is %q: it names one that comes later", e.Name, set[e.Name])
		}
	}
	return set
}

func hasMount(o objects, path string) bool {
	return slices.ContainsFunc(o.set.Spec.Template.Spec.Containers[0].VolumeMounts,
		func(m core.VolumeMount) bool { return m.MountPath == path })
}

// configured reads the settings of a node as quotad serve does in the pod.
func configured(t *testing.T, o objects) *nodeconfig.Config {
	t.Helper()
	container := o.set.Spec.Template.Spec.Containers[0]
	if want := []string{"serve", "--config", "/etc/quotad/node/node.yaml"}; !slices.Equal(
		container.Args, want) || container.Command != nil {
		t.Errorf("the command is %q %q", container.Command, container.Args)
	}
	file := filepath.Join(t.TempDir(), "node.yaml")
	text := o.config[o.set.Name].Data["node.yaml"]
	// Keys of gossip are read with the settings.
	gossip := filepath.Join(t.TempDir(), "gossip.key")
	text = strings.ReplaceAll(text, "/etc/quotad/gossip/gossip.key", gossip)
	for name, data := range map[string]string{file: text,
		gossip: "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n"} {
		suite.Must(t, os.WriteFile(name, []byte(data), 0o600))
	}
	set := environment(t, o)
	for name := range set {
		if strings.HasPrefix(name, "QUOTAD_") && !slices.ContainsFunc(nodeconfig.Settings(),
			func(s nodeconfig.Setting) bool { return s.Variable() == name }) {
			t.Errorf("%s is no setting", name)
		}
	}
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	layers := nodeconfig.AddFlags(flags, func(name string) (string, bool) {
		value, ok := set[name]
		return value, ok
	})
	suite.Must(t, flags.Set("config", file))
	c, err := layers.Read()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return c
}

// TestChartNodesStart: what the chart configures, quotad takes. Ports, files and times agree.
func TestChartNodesStart(t *testing.T) {
	for _, example := range examples {
		t.Run(example, func(t *testing.T) {
			o := rendered(t, example)
			c := configured(t, o)
			values := valuesOf(t, example)
			if c.Region != values["region"] || c.Node != release+"-0" ||
				c.Nodes != int(*o.set.Spec.Replicas) || c.DataDir != "/data" ||
				c.Advertise.Peer != "10.8.0.7:8082" || c.Advertise.Gossip != "10.8.0.7:7946" {
				t.Errorf("%+v", c)
			}
			if first := release + "-0." + o.set.Spec.ServiceName + "." + namespace +
				".svc:7946"; len(c.Seeds) != c.Nodes+1 || c.Seeds[0] != first {
				t.Errorf("seeds are %q", c.Seeds)
			}
			spec := o.set.Spec.Template.Spec
			pause := time.Duration(0)
			if hook := spec.Containers[0].Lifecycle; hook != nil {
				pause = time.Duration(hook.PreStop.Sleep.Seconds) * time.Second
			}
			grace := time.Duration(*spec.TerminationGracePeriodSeconds) * time.Second
			if need := pause + c.DrainTimeout + leaveTime; grace < need+5*time.Second {
				t.Errorf("the pod has %v to end, and needs %v", grace, need)
			}
			if first := values["bootstrap"] == true; first != (c.Bootstrap != 0) {
				t.Errorf("bootstrap is %v, and its value %v", c.Bootstrap, values["bootstrap"])
			}
			if guarded := example == "guarded"; guarded != (c.Redis.Timeout == 30*time.Millisecond) ||
				guarded != (c.Redis.TLS.CA != "") || guarded != (c.Headers.HTTP == "ietf") {
				t.Errorf("settings are not those of the values: %+v", c.Redis)
			}
			checkMounts(t, o, c)
			checkPorts(t, o, c)
		})
	}
}

// checkMounts: files that the node reads are mounted, and each volume exists.
func checkMounts(t *testing.T, o objects, c *nodeconfig.Config) {
	t.Helper()
	spec := o.set.Spec.Template.Spec
	for _, file := range []string{c.Policy, c.PeerTLS.Cert, c.PeerTLS.Key, c.PeerTLS.CA,
		c.APITLS.Cert, c.APITLS.Key, c.APITLS.CA, c.AdminTLS.Cert, c.AdminTLS.Key, c.Roles,
		c.Redis.TLS.CA} {
		if file != "" && !hasMount(o, filepath.Dir(file)) {
			t.Errorf("%s is not mounted", file)
		}
	}
	for _, m := range spec.Containers[0].VolumeMounts {
		i := slices.IndexFunc(spec.Volumes, func(v core.Volume) bool { return v.Name == m.Name })
		switch {
		case i < 0 && m.Name != o.set.Spec.VolumeClaimTemplates[0].Name:
			t.Errorf("there is no volume %s", m.Name)
		case m.SubPath != "":
			t.Errorf("%s is mounted by a subPath, which does not change with its source", m.Name)
		case i >= 0 && !m.ReadOnly:
			t.Errorf("%s is not mounted read-only", m.Name)
		case i >= 0 && spec.Volumes[i].Secret != nil && *spec.Volumes[i].Secret.DefaultMode != 0o440:
			t.Errorf("the files of %s have the mode %o", m.Name, *spec.Volumes[i].Secret.DefaultMode)
		}
	}
}

// checkPorts: the container, services and probes have the ports on which the node listens.
func checkPorts(t *testing.T, o objects, c *nodeconfig.Config) {
	t.Helper()
	container := o.set.Spec.Template.Spec.Containers[0]
	listens := map[string]uint16{"http": c.Listen.HTTP.Port(), "grpc": c.Listen.GRPC.Port(),
		"peer": c.Listen.Peer.Port(), "gossip": c.Listen.Gossip.Port(),
		"gossip-udp": c.Listen.Gossip.Port()}
	if !c.Listen.Admin.Addr().IsLoopback() {
		listens["admin"] = c.Listen.Admin.Port()
	}
	has := map[string]uint16{}
	for _, p := range container.Ports {
		has[p.Name] = uint16(p.ContainerPort)
		if want := p.Name == "gossip-udp"; want != (p.Protocol == core.ProtocolUDP) {
			t.Errorf("port %s is %s", p.Name, p.Protocol)
		}
	}
	for name, port := range listens {
		if has[name] != port {
			t.Errorf("port %s of the container is %d, and the node listens on %d", name, has[name], port)
		}
	}
	served := map[string]bool{}
	for _, s := range o.services {
		for _, p := range s.Spec.Ports {
			served[p.Name] = true
			if p.TargetPort != intstr.FromString(p.Name) || uint16(p.Port) != listens[p.Name] {
				t.Errorf("service %s leads port %d to %s", s.Name, p.Port, p.TargetPort.String())
			}
		}
	}
	if len(has) != len(listens) || len(served) != len(listens) {
		t.Errorf("ports %v of the container and %v of services, want %v", has, served, listens)
	}
	scheme := core.URISchemeHTTP
	if c.APITLS.Cert != "" {
		scheme = core.URISchemeHTTPS
	}
	for path, probes := range map[string][]*core.Probe{"/readyz": {container.ReadinessProbe},
		"/livez": {container.StartupProbe, container.LivenessProbe}} {
		for _, p := range probes {
			if p.HTTPGet.Path != path || p.HTTPGet.Port != intstr.FromString("http") ||
				p.HTTPGet.Scheme != scheme {
				t.Errorf("a probe asks %+v", p.HTTPGet)
			}
		}
	}
}

// TestChartIsHardened: the pod has no rights that it does not need.
func TestChartIsHardened(t *testing.T) {
	for _, example := range examples {
		spec := rendered(t, example).set.Spec.Template.Spec
		pod, own := spec.SecurityContext, spec.Containers[0].SecurityContext
		if !*pod.RunAsNonRoot || *pod.RunAsUser == 0 || *pod.FSGroup == 0 ||
			pod.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault ||
			*own.AllowPrivilegeEscalation || !*own.ReadOnlyRootFilesystem || own.Privileged != nil ||
			!slices.Equal(own.Capabilities.Drop, []core.Capability{"ALL"}) ||
			own.Capabilities.Add != nil || *spec.AutomountServiceAccountToken {
			t.Errorf("%s: %+v, %+v", example, pod, own)
		}
	}
}

// TestChartLimits: the limits document of the values reaches the node as it is.
func TestChartLimits(t *testing.T) {
	o := rendered(t, "private")
	d, err := policy.Parse("limits.yaml", []byte(o.config[release+"-limits"].Data["limits.yaml"]))
	if err != nil || len(d.Limits) != 1 {
		t.Fatal(d, err)
	}
	for _, v := range o.set.Spec.Template.Spec.Volumes {
		if v.Name == "limits" && v.ConfigMap.Name != release+"-limits" {
			t.Errorf("the node mounts %s", v.ConfigMap.Name)
		}
	}
}

// TestChartPolicies: the budget, the network policy, spread and the monitor select the nodes, and
// the policy lets in whom the values name.
func TestChartPolicies(t *testing.T) {
	private, guarded := rendered(t, "private"), rendered(t, "guarded")
	for _, o := range []objects{private, guarded} {
		labels := o.set.Spec.Template.Labels
		if len(o.budgets) != 1 || o.budgets[0].Spec.MaxUnavailable.IntValue() != 1 ||
			len(o.networks) != 1 || len(o.accounts) != 1 ||
			o.accounts[0].Name != o.set.Spec.Template.Spec.ServiceAccountName {
			t.Fatalf("%d budgets, %d network policies, %d accounts", len(o.budgets),
				len(o.networks), len(o.accounts))
		}
		selectors := []map[string]string{o.set.Spec.Selector.MatchLabels,
			o.budgets[0].Spec.Selector.MatchLabels, o.networks[0].Spec.PodSelector.MatchLabels}
		for _, s := range o.services {
			selectors = append(selectors, s.Spec.Selector)
		}
		for _, c := range o.set.Spec.Template.Spec.TopologySpreadConstraints {
			selectors = append(selectors, c.LabelSelector.MatchLabels)
		}
		if len(selectors) != 7 {
			t.Errorf("there are %d selectors", len(selectors))
		}
		for _, selector := range selectors {
			if !selects(selector, labels) {
				t.Errorf("%v does not select pods with %v", selector, labels)
			}
		}
	}
	if n := len(private.networks[0].Spec.Ingress); n != 2 || len(private.monitors) != 0 {
		t.Errorf("%d rules, %d monitors", n, len(private.monitors))
	}
	rules := guarded.networks[0].Spec.Ingress
	if len(rules) != 3 || rules[1].From[1].IPBlock.CIDR != "203.0.113.0/24" ||
		rules[2].Ports[0].Port.String() != "admin" {
		t.Errorf("%+v", rules)
	}
	m := guarded.monitors[0]
	nodes := guarded.services[guarded.set.Spec.ServiceName]
	if e := m.Spec.Endpoints[0]; !selects(m.Spec.Selector.MatchLabels, nodes.Labels) ||
		selects(m.Spec.Selector.MatchLabels, guarded.services[release].Labels) ||
		e.Port != "admin" || e.Path != "/metrics" || e.Scheme != "https" ||
		e.Relabelings[0]["replacement"] != "quotad" ||
		e.Authorization.Credentials.Name != "quotad-prometheus" {
		t.Errorf("%+v", m)
	}
}

// TestChartOfOneNode: of a single node no pod could ever be evicted if there were a budget.
func TestChartOfOneNode(t *testing.T) {
	values := valuesOf(t, "private")
	values["replicas"] = 1
	manifests, err := render(t, values)
	suite.Must(t, err)
	o := decode(t, manifests)
	if c := configured(t, o); c.Nodes != 1 || len(c.Seeds) != 2 || len(o.budgets) != 0 {
		t.Errorf("%d nodes, seeds %q, %d budgets", c.Nodes, c.Seeds, len(o.budgets))
	}
}

// selects reports whether a selector that says something selects what has these labels.
func selects(selector, labels map[string]string) bool {
	for name, value := range selector {
		if labels[name] != value {
			return false
		}
	}
	return len(selector) > 0
}
