package checks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/quotad/quotad/chaos/lab/suite"
)

const (
	chartFolder = "../helm/quotad"
	namespace   = "limits"
	release     = "quotad-us"
)

// examples are the values of chart/ci, by their names.
var examples = []string{"private", "guarded"}

func valuesOf(t *testing.T, name string) map[string]any {
	t.Helper()
	v, err := chartutil.ReadValuesFile(filepath.Join(chartFolder, "ci", name+"-values.yaml"))
	suite.Must(t, err)
	return v
}

func TestChartLints(t *testing.T) {
	for _, name := range examples {
		for _, m := range lint.All(chartFolder, valuesOf(t, name), namespace, true).Messages {
			// Helm wants an icon.
			if m.Severity > support.InfoSev {
				t.Errorf("with the values %s: %v", name, m)
			}
		}
	}
}

// render returns the manifests that the chart makes of values, by template.
func render(t *testing.T, values map[string]any) (map[string]string, error) {
	t.Helper()
	c, err := loader.LoadDir(chartFolder)
	suite.Must(t, err)
	if len(c.Templates) == 0 || c.Metadata.Type != "application" {
		t.Fatalf("the chart has %d templates", len(c.Templates))
	}
	return renderChart(c, values)
}

func renderChart(c *chart.Chart, values map[string]any) (map[string]string, error) {
	all, err := chartutil.ToRenderValues(c, values,
		chartutil.ReleaseOptions{Name: release, Namespace: namespace, IsInstall: true},
		chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.Render(c, all)
}

// objects are what a rendered chart has, by type.
type objects struct {
	set      apps.StatefulSet
	config   map[string]core.ConfigMap
	services map[string]core.Service
	accounts []core.ServiceAccount
	budgets  []policy.PodDisruptionBudget
	networks []networking.NetworkPolicy
	monitors []serviceMonitor
	rules    []prometheusRule
}

// objectNames are what an object is found by.
type objectNames struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
}

// serviceMonitor has the fields of a ServiceMonitor that the chart uses.
type serviceMonitor struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Metadata   objectNames `json:"metadata"`
	Spec       struct {
		Selector struct {
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"selector"`
		Endpoints []struct {
			Port          string         `json:"port"`
			Path          string         `json:"path"`
			Interval      string         `json:"interval"`
			Scheme        string         `json:"scheme"`
			TLSConfig     map[string]any `json:"tlsConfig"`
			Authorization struct {
				Credentials core.SecretKeySelector `json:"credentials"`
			} `json:"authorization"`
			Relabelings []map[string]string `json:"relabelings"`
		} `json:"endpoints"`
	} `json:"spec"`
}

// decode reads manifests strictly: a field that Kubernetes does not have is an error.
func decode(t *testing.T, manifests map[string]string) objects {
	t.Helper()
	o := objects{config: map[string]core.ConfigMap{}, services: map[string]core.Service{}}
	for name, text := range manifests {
		if strings.HasSuffix(name, ".tpl") || strings.HasSuffix(name, "NOTES.txt") {
			continue
		}
		documents := utilyaml.NewYAMLReader(newReader(text))
		for {
			one, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			suite.Must(t, err)
			if err := o.add(one); err != nil {
				t.Errorf("%s: %v\n%s", name, err, one)
			}
		}
	}
	return o
}

func (o *objects) add(document []byte) error {
	var head struct{ Kind string }
	if err := yaml.Unmarshal(document, &head); err != nil {
		return err
	}
	switch head.Kind {
	case "":
		if rest := strings.TrimSpace(uncommented(document)); rest != "" {
			return fmt.Errorf("no kind: %s", rest)
		}
		return nil
	case "StatefulSet":
		return yaml.UnmarshalStrict(document, &o.set)
	case "ConfigMap":
		return addNamed(document, o.config, func(c core.ConfigMap) string { return c.Name })
	case "Service":
		return addNamed(document, o.services, func(s core.Service) string { return s.Name })
	case "ServiceAccount":
		return addTo(document, &o.accounts)
	case "PodDisruptionBudget":
		return addTo(document, &o.budgets)
	case "NetworkPolicy":
		return addTo(document, &o.networks)
	case "ServiceMonitor":
		return addTo(document, &o.monitors)
	case "PrometheusRule":
		return addTo(document, &o.rules)
	}
	return fmt.Errorf("kind %s is not looked at", head.Kind)
}

func addTo[T any](document []byte, all *[]T) error {
	var one T
	if err := yaml.UnmarshalStrict(document, &one); err != nil {
		return err
	}
	*all = append(*all, one)
	return nil
}

func addNamed[T any](document []byte, all map[string]T, name func(T) string) error {
	var one T
	if err := yaml.UnmarshalStrict(document, &one); err != nil {
		return err
	}
	all[name(one)] = one
	return nil
}

func uncommented(document []byte) string {
	var kept bytes.Buffer
	for line := range strings.Lines(string(document)) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") && strings.TrimSpace(line) != "---" {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// rendered are the objects that the chart makes of an example.
func rendered(t *testing.T, example string) objects {
	t.Helper()
	manifests, err := render(t, valuesOf(t, example))
	suite.Must(t, err)
	return decode(t, manifests)
}

// TestChartRefuses: values with which no node would start, or with which nothing would hold.
func TestChartRefuses(t *testing.T) {
	for change, why := range map[string]string{
		`region: ""`: "region",
		`redis: {urlSecret: {name: "", key: url}}`: "urlSecret",
		`replica: 3`:                      "replica",
		`limits: ""`:                      "give the limits document",
		`limitsConfigMap: other`:          "both given",
		`insecure: [peer, gossip]`:        "give apiTLSSecret and rolesSecret",
		`insecure: [api, gossip]`:         "quotad keys ca",
		`insecure: [api, peer]`:           "quotad keys gossip --out gossip.key",
		`admin: {expose: true}`:           "admin.expose needs",
		`serviceMonitor: {enabled: true}`: "serviceMonitor needs admin.expose",
		`serviceMonitor: {job: limits}`:   "job",
		`drainSeconds: 10s`:               "drainSeconds",
	} {
		values := valuesOf(t, "private")
		suite.Must(t, yaml.Unmarshal([]byte(change), &values))
		if _, err := render(t, values); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", change, err, why)
		}
	}
}

// TestChartValuesAreSaid: each value is in values.yaml, with which the schema agrees.
func TestChartValuesAreSaid(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chartFolder, "values.yaml"))
	suite.Must(t, err)
	var values, schema map[string]any
	suite.Must(t, yaml.Unmarshal(text, &values))
	text, err = os.ReadFile(filepath.Join(chartFolder, "values.schema.json"))
	suite.Must(t, err)
	suite.Must(t, yaml.Unmarshal(text, &schema))
	sameFields(t, "", values, schema)
}

// sameFields compares the fields of a value with those that the schema has for it.
func sameFields(t *testing.T, path string, values, schema map[string]any) {
	t.Helper()
	known, closed := schema["properties"].(map[string]any)
	if !closed {
		return // anything may be there
	}
	for name, s := range known {
		value, said := values[name]
		if !said && path+name != "global" {
			t.Errorf("values.yaml does not say %s%s", path, name)
		}
		if inner, ok := value.(map[string]any); ok {
			sameFields(t, path+name+".", inner, s.(map[string]any))
		}
	}
	for name := range values {
		if known[name] == nil {
			t.Errorf("the schema does not have %s%s", path, name)
		}
	}
}
