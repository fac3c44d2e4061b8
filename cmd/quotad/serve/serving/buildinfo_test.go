package serving

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/cmd/quotad/build"
)

func TestBuildInfo(t *testing.T) {
	const want = "# HELP quotad_build_info 1, with what the node was built from: the version of " +
		"quotad, its commit, and the version of Go.\n# TYPE quotad_build_info gauge\n" +
		"quotad_build_info{goversion=\"go1.26\",revision=\"abc\",version=\"v1.2.3\"} 1\n"
	c := buildInfo(build.Info{Version: "v1.2.3", Commit: "abc", Go: "go1.26", Modified: true})
	suite.Must(t, testutil.CollectAndCompare(c, strings.NewReader(want)))
}
