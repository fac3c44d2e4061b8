package envoy

import (
	"flag"
	"os"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/front/authz"
	"github.com/quotad/quotad/region/front/authz/envoyconfig"
)

var update = flag.Bool("update", false, "write envoy.yaml anew, of limits.yaml and authz.yaml")

// TestRecipeIsWritten: envoy.yaml is what quotad generate envoy prints for limits.yaml and authz.yaml.
func TestRecipeIsWritten(t *testing.T) {
	limits, err := policy.Load("limits.yaml")
	suite.Must(t, err)
	mapping, err := authz.Load("authz.yaml")
	suite.Must(t, err)
	want, leftOut, err := envoyconfig.Write(envoyconfig.Sources{Document: limits, Mapping: mapping, Domain: "web",
		DocumentFile: "limits.yaml", MappingFile: "authz.yaml"})
	if err != nil || len(leftOut) > 0 {
		t.Fatalf("%v, left out: %v", err, leftOut)
	}
	if *update {
		suite.Must(t, os.WriteFile("envoy.yaml", []byte(want), 0o644))
	}
	got, err := os.ReadFile("envoy.yaml")
	suite.Must(t, err)
	if string(got) != want {
		t.Error("envoy.yaml is not what quotad generate envoy prints; write it with\n" +
			"go test ./deploy/envoy -run RecipeIsWritten -update\n" +
			"and change region/front/authz/envoyconfig/configuration.yaml where it is wrong")
	}
}
