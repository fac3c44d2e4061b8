package checks

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/deploy/monitoring"
)

// prometheusRule has the fields of a PrometheusRule that the chart uses.
type prometheusRule struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Metadata   objectNames `json:"metadata"`
	Spec       alertRules  `json:"spec"`
}

// alertRules are the rules in the form of Prometheus' own files.
type alertRules struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []struct {
			Alert       string            `json:"alert"`
			Expr        string            `json:"expr"`
			For         string            `json:"for"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"rules"`
	} `json:"groups"`
}

// TestChartRules: the chart brings the alert rules as "quotad generate alerts" prints them, where it
// is asked for them.
func TestChartRules(t *testing.T) {
	if n := len(rendered(t, "private").rules); n != 0 {
		t.Errorf("%d rules that nobody asked for", n)
	}
	all := rendered(t, "guarded").rules
	var want alertRules
	suite.Must(t, yaml.UnmarshalStrict([]byte(monitoring.Alerts("https://wiki.example.org/runbooks")), &want))
	if len(all) != 1 || all[0].APIVersion != "monitoring.coreos.com/v1" || all[0].Metadata.Name != release ||
		all[0].Metadata.Labels["release"] != "prometheus" || len(want.Groups) == 0 ||
		!reflect.DeepEqual(all[0].Spec, want) {
		t.Errorf("the rules are %+v", all)
	}
}

// TestChartLabels: labels of quotad's own begin with a DNS name, and all with the same one.
func TestChartLabels(t *testing.T) {
	o := rendered(t, "guarded")
	prefixes := map[string]bool{}
	all := []map[string]string{o.set.Labels, o.set.Spec.Template.Labels, o.monitors[0].Metadata.Labels,
		o.monitors[0].Spec.Selector.MatchLabels, o.rules[0].Metadata.Labels}
	for _, s := range o.services {
		all = append(all, s.Labels)
	}
	for _, labels := range all {
		for name := range labels {
			prefix, _, found := strings.Cut(name, "/")
			if errs := validation.IsQualifiedName(name); len(errs) > 0 {
				t.Errorf("label %s: %v", name, errs)
			}
			if found && !strings.HasSuffix(prefix, "kubernetes.io") && prefix != "helm.sh" {
				prefixes[prefix] = true
			}
		}
	}
	for prefix := range prefixes {
		if len(prefixes) != 1 || !strings.Contains(prefix, ".") {
			t.Errorf("the prefixes %v", prefixes)
		}
	}
	if len(prefixes) == 0 || o.set.Spec.Template.Labels[slices.Sorted(maps.Keys(prefixes))[0]+"/region"] != "eu-west" {
		t.Errorf("pods have the labels %v", o.set.Spec.Template.Labels)
	}
	for name := range o.set.Spec.Selector.MatchLabels {
		if prefixes[strings.Split(name, "/")[0]] {
			t.Errorf("a StatefulSet cannot change its selector, which has %s", name)
		}
	}
}
