//go:build !race

package monitoring

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/spf13/pflag"

	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/play/world"
	"github.com/quotad/quotad/cmd/quotad/serve/authority"
	"github.com/quotad/quotad/cmd/quotad/serve/nodeconfig"
	"github.com/quotad/quotad/cmd/quotad/serve/serving"
	"github.com/quotad/quotad/region/base/door"
	"github.com/quotad/quotad/region/front/roles"
	"github.com/quotad/quotad/region/trade/peer"
)

// inventory is what nodes expose: the labels of each metric, by its name.
type inventory map[string]map[string]bool

func (v inventory) add(name string, labels ...string) {
	if v[name] == nil {
		v[name] = map[string]bool{}
	}
	for _, l := range labels {
		v[name][l] = true
	}
}

// takeInventory asks nodes that run. A scrape has no series of counters that have not counted yet,
// so registries are asked for their descriptions, too. What is counted of callers is not in a
// node's own registry.
func takeInventory(t *testing.T) inventory {
	t.Helper()
	v := inventory{}
	w, err := world.Start(t.Context(), world.Config{Limit: 100, Window: time.Second,
		Regions:   []world.Region{{Name: "us", Weight: 1}, {Name: "eu", Weight: 1}},
		Algorithm: "fixed_window", Log: slog.New(slog.DiscardHandler),
		Redis: servers.StartEmbedded})
	suite.Must(t, err)
	defer w.Close()
	file := filepath.Join(t.TempDir(), "roles.yaml")
	const callers = `callers: [{name: a, roles: [read], certificates: ["quotad://people/a"]}]`
	suite.Must(t, os.WriteFile(file, []byte(callers), 0o600))
	book, err := roles.OpenBook(file, func(error) {})
	suite.Must(t, err)
	for _, c := range append(book.Collectors(), w.Node("us").Metrics(), door.NewWork(),
		roles.NewGuard("api", nil, slog.New(slog.DiscardHandler))) {
		v.describe(t, c)
	}
	v.scrape(t, startNode(t))
	return v
}

var (
	described = regexp.MustCompile(
		`^Desc\{fqName: "([^"]+)", .*constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)
	constLabel = regexp.MustCompile(`([a-z_]+)="`)
)

// describe adds the metrics that a collector describes.
func (v inventory) describe(t *testing.T, c prometheus.Collector) {
	t.Helper()
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		c.Describe(descs)
	}()
	for d := range descs {
		m := described.FindStringSubmatch(d.String())
		if m == nil {
			t.Errorf("a description has another form than expected: %s", d)
			continue
		}
		v.add(m[1])
		for _, l := range constLabel.FindAllStringSubmatch(m[2], -1) {
			v.add(m[1], l[1])
		}
		for l := range strings.SplitSeq(m[3], ",") {
			if l != "" {
				v.add(m[1], l)
			}
		}
	}
}

// scrape adds the metrics that a node tells Prometheus.
func (v inventory) scrape(t *testing.T, admin string) {
	t.Helper()
	answer, err := http.Get("http://" + admin + "/metrics")
	suite.Must(t, err)
	defer answer.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", answer.Status, err)
	}
	for name, f := range families {
		names := []string{name}
		if h := f.GetMetric()[0].GetHistogram(); h != nil {
			v.add(name+"_bucket", "le")
			names = []string{name + "_bucket", name + "_sum", name + "_count"}
		}
		for _, n := range names {
			v.add(n)
			for _, m := range f.GetMetric() {
				for _, l := range m.GetLabel() {
					v.add(n, l.GetName())
				}
			}
		}
	}
}

const limits = `version: 1
regions:
  us: {weight: 1}
limits:
  - {name: account, domain: api, key: [account], algorithm: fixed_window, limit: 100, window: 1s}
`

var servesAt = regexp.MustCompile(`serving.*"?admin"?[=:]"?([0-9.]+:[0-9]+)`)

// startNode runs a node as quotad serve does, with certificates, until the test ends, and
// returns the address of its admin listener.
func startNode(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if _, err := authority.Make(in("certs"), 2*time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := authority.Issue(in("certs"), peer.Identity{Region: "us", Node: "n1"},
		[]string{"127.0.0.1"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	suite.Must(t, os.WriteFile(in("limits.yaml"), []byte(limits), 0o600))
	cert, key, ca := in("certs/us/n1.pem"), in("certs/us/n1.key"), in("certs/ca.pem")
	set := map[string]string{"region": "us", "node": "n1", "data-dir": in("data"),
		"policy": in("limits.yaml"), "redis-embedded": "true", "bootstrap": "alone",
		"listen-http": "127.0.0.1:0", "listen-grpc": "127.0.0.1:0", "listen-admin": "127.0.0.1:0",
		"listen-peer": "127.0.0.1:0", "listen-gossip": "127.0.0.1:0", "peer-tls-cert": cert,
		"peer-tls-key": key, "peer-tls-ca": ca, "api-tls-cert": cert, "api-tls-key": key}
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	layers := nodeconfig.AddFlags(flags, func(string) (string, bool) { return "", false })
	for name, value := range set {
		suite.Must(t, flags.Set(name, value))
	}
	c, err := layers.Read()
	suite.Must(t, err)
	return serve(t, c, layers.Read)
}

// serve runs a node, and returns the address of its admin listener when it serves.
func serve(t *testing.T, c *nodeconfig.Config, again func() (*nodeconfig.Config, error)) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	said, log := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := serving.Serve(ctx, c, again, log)
		log.CloseWithError(errors.Join(err, io.EOF))
		ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		suite.Must(t, <-ended)
	})
	var all strings.Builder
	for lines := bufio.NewScanner(said); lines.Scan(); {
		all.WriteString(lines.Text() + "\n")
		if m := servesAt.FindStringSubmatch(lines.Text()); m != nil {
			go io.Copy(io.Discard, said) // or the node would wait to write
			return m[1]
		}
	}
	cancel()
	t.Fatalf("the node does not serve:\n%s", all.String())
	return ""
}
