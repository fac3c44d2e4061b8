package staging

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy/strictyaml"
	"github.com/quotad/quotad/policy/trust"
)

const good = `
clocks_apart: 20ms
token_file: alice.token
ca: certs/ca.pem
regions:
  us-east:
    - {name: n1, http: "https://192.0.2.1:8080", admin: "https://192.0.2.1:8083"}
    - name: 2
      http: https://us2.example.com:8080
      admin: 127.0.0.1:8083
      token_file: /tokens/two
      cert: alice.pem
      key: /keys/alice.key
  eu-west: [{name: n1, http: "https://[2001:db8::1]:8080", admin: "https://[2001:db8::1]:8083", ca: eu.pem}]
`

func TestReadNodes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nodes.yaml")
	suite.Must(t, os.WriteFile(path, []byte(good), 0o600))
	got, err := ReadNodes(path)
	suite.Must(t, err)
	in := func(name string) string { return filepath.Join(filepath.Dir(path), name) }
	ca := in("certs/ca.pem")
	want := &Nodes{
		ClocksApart: 20 * time.Millisecond,
		Regions: []Region{
			{"us-east", []Node{
				{"n1", "https://192.0.2.1:8080", "https://192.0.2.1:8083",
					Access{in("alice.token"), trust.Files{CA: ca}}},
				{"2", "https://us2.example.com:8080", "127.0.0.1:8083",
					Access{"/tokens/two", trust.Files{CA: ca, Cert: in("alice.pem"), Key: "/keys/alice.key"}}}}},
			{"eu-west", []Node{{"n1", "https://[2001:db8::1]:8080", "https://[2001:db8::1]:8083",
				Access{in("alice.token"), trust.Files{CA: in("eu.pem")}}}}},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if _, err := ReadNodes(path + "x"); err == nil || !strings.HasPrefix(err.Error(),
		"read nodes file: ") {
		t.Error(err)
	}
}

// TestNodesRefused: each mistake is reported with its position and a remedy.
func TestNodesRefused(t *testing.T) {
	node := func(fields string) string { return "regions:\n  us: [{" + fields + "}]" }
	for _, c := range []struct{ name, src, want string }{
		{"nothing", "", "nodes.yaml:1:1: the file is empty; write regions and their nodes"},
		{"no mapping", "us",
			`nodes.yaml:1:1: "us" stands where a mapping is expected; write regions and their nodes`},
		{"no regions", "ca: c",
			"nodes.yaml:1:1: regions: missing; write it like us-east: "},
		{"other fields", "regions:\n  us: [{name: n, http: h:2, admin: a:1}]\nload: 1",
			"nodes.yaml:3:1: load: no such field; use one of regions, clocks_apart, token_file, ca, cert, key"},
		{"empty regions", "regions: {}",
			"nodes.yaml:1:10: regions: empty; write it like us-east: "},
		{"a list of regions", "regions: [us]",
			"nodes.yaml:1:10: regions: a list stands where a mapping is expected; write it like us-east: "},
		{"the name of a region", "regions:\n  u s: [{name: n, http: h:2, admin: a:2}]",
			`nodes.yaml:2:3: regions."u s": "u s" is no name of a region; `},
		{"a region without nodes", "regions: {us: []}",
			"nodes.yaml:1:15: regions.us: empty; write it like us-east: "},
		{"a region of one node", "regions: {us: {name: n}}",
			"nodes.yaml:1:15: regions.us: a mapping stands where a list is expected; write it like us-east: "},
		{"no node", "regions: {us: [n1]}",
			`nodes.yaml:1:16: regions.us[0]: "n1" stands where a mapping is expected; write it like {name: n1, `},
		{"no name", node("http: h:2, admin: a:3"),
			"nodes.yaml:2:8: regions.us[0].name: missing; write it like {name: n1, "},
		{"no http", node("name: n, admin: a:4"),
			"nodes.yaml:2:8: regions.us[0].http: missing; write it like {name: n1, "},
		{"no admin", node("name: n, http: h:2"),
			"nodes.yaml:2:8: regions.us[0].admin: missing; write it like {name: n1, "},
		{"an empty name", node(`name: "", http: h:2, admin: a:5`),
			"nodes.yaml:2:15: regions.us[0].name: empty; write it like {name: n1, "},
		{"a null", node(`name: , http: h:2, admin: a:6`),
			"nodes.yaml:2:9: regions.us[0].name: an empty value stands where a plain value is expected; "},
		{"a bad name", node("name: a b, http: h:2, admin: a:7"),
			`nodes.yaml:2:15: regions.us[0].name: "a b" is no name of a node; `},
		{"more of a node", node("name: n, http: h:2, admin: a:8, grpc: h:3"),
			"regions.us[0].grpc: no such field; use one of name, http, admin, token_file, ca, cert, key"},
		{"a URL", node(`name: n, http: "http://h:2", admin: a:9`),
			`regions.us[0].http: "http://h:2" is not host:port; `},
		{"no port", node("name: n, http: h, admin: a:10"),
			`regions.us[0].http: "h" is not host:port; `},
		{"port 0", node(`name: n, http: "h:0", admin: a:11`),
			`regions.us[0].http: "h:0" is not host:port; `},
		{"no host", node(`name: n, http: h:2, admin: ":1"`),
			`regions.us[0].admin: ":1" is not host:port; `},
		{"a value of values", node("name: [n], http: h:2, admin: a:13"),
			"nodes.yaml:2:15: regions.us[0].name: a list stands where a plain value is expected; "},
		{"one address twice", node("name: n, http: h:1, admin: https://h:1"),
			`regions.us[0].admin: "h:1" is given at regions.us[0].http, too; `},
		{"a node's address",
			"regions:\n  us: [{name: n, http: h:2, admin: a:15}]\n  eu: [{name: n, http: h:2, admin: a:16}]",
			`nodes.yaml:3:24: regions.eu[0].http: "h:2" is given at regions.us[0].http, too; `},
		{"one name twice", "regions:\n  us: [{name: n, http: h:2, admin: a:17}, {name: n, http: h:4, admin: a:18}]",
			`regions.us[1].name: "n" is the name of another node of the region, too; `},
		{"half a pair", "regions:\n  us: [{name: n, http: h:2, admin: a:19}]\ncert: a",
			"nodes.yaml:3:7: cert: no key is given with it; give key, too"},
		{"the other half", node("name: n, http: h:2, admin: a:19, key: a"),
			"regions.us[0].key: no cert is given with it; give cert, too"},
		{"a path of nothing", "ca: ''\nregions:\n  us: [{name: n, http: h:2, admin: a:20}]",
			"nodes.yaml:1:5: ca: empty; give the path of a file"},
		{"a token in plain text", node("name: n, http: localhost:1, admin: h:2, token_file: t"),
			"regions.us[0].admin: the token would go to another machine in plain text; write https://"},
		{"tls of before", "regions:\n  us: [{name: n, http: h:2, admin: a:20}]\ntls: {cert: a, key: b, ca: c}",
			"nodes.yaml:3:6: tls: the peer ports of nodes are no longer called; leave it out, write https:// before http " +
				"and admin where they have TLS, and beside regions ca, and token_file or cert and key"},
		{"a node of before", node("name: n, peer: h:1, http: h:2, admin: a:3"),
			"nodes.yaml:2:24: regions.us[0].peer: the peer ports of nodes are no longer called; leave it out: admin is where"},
		{"no time", "clocks_apart: 1\nregions:\n  us: [{name: n, http: h:2, admin: a:21}]",
			`nodes.yaml:1:15: clocks_apart: 1 is not a duration; `},
		{"too long a time", "clocks_apart: 11s\nregions:\n  us: [{name: n, http: h:2, admin: a:22}]",
			`clocks_apart: "11s" is out of range; `},
		{"a region twice", "regions:\n  us: [{name: n, http: h:2, admin: a:23}]\n  us: [{name: m, http: h:4, admin: a:24}]", "nodes.yaml:3:3: regions.us: given twice, first at nodes.yaml:2:3; keep one of the two"},
		{"no YAML", "regions: [", "not valid YAML: "},
		{"two documents", good + "---\n" + good,
			"a second document starts here; keep one document in a file"},
		{"an alias", "regions:\n  us: &a [{name: n, http: h:2, admin: a:25}]\n  eu: *a",
			"nodes.yaml:3:7: aliases (*name) are not allowed; "},
		{"too long", strings.Repeat("#\n", nodesKind.MaxBytes),
			"nodes.yaml:1:1: the file is larger than 32 KiB; "},
		{"too deep", strings.Repeat("[", nodesKind.MaxBytes),
			"nodes.yaml:1:17: nested more than 16 levels deep; "},
		{"too deep in blocks", strings.Repeat("- ", nodesKind.MaxBytes/2),
			"nodes.yaml:1:33: nested more than 16 levels deep; "},
		{"too deep in keys", strings.Repeat("? ", nodesKind.MaxBytes/2),
			"nodes.yaml:1:1: explicit keys (?) are not allowed; "},
	} {
		t.Run(c.name, func(t *testing.T) {
			nodes, err := ParseNodes("nodes.yaml", []byte(c.src))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%+v, %v\nwant %s", nodes, err, c.want)
			}
			var one *strictyaml.Error
			if !errors.As(err, &one) || one.Mend == "" {
				t.Errorf("%v has no place or says nothing of how to mend it", err)
			}
		})
	}
}

// TestNodesReportsEverything: all mistakes are reported at once, or the first of very many.
func TestNodesReportsEverything(t *testing.T) {
	_, err := ParseNodes("nodes.yaml",
		[]byte("regions:\n  us: [{name: n, http: h, admin: h}, {name: n}]\n"+strings.Repeat("x: 1\n",
			1)))
	for _, want := range []string{"us[0].http", "us[0].admin",
		"us[1].http", "us[1].admin",
		"3:1: x: no such field"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is missing in %v", want, err)
		}
	}
	_, err = ParseNodes("nodes.yaml",
		[]byte("regions:\n  us:\n"+strings.Repeat("    - {}\n", 1000)))
	if n := strings.Count(err.Error(), "\n"); n != strictyaml.MaxErrors {
		t.Errorf("%d lines are reported", n)
	}
}

// FuzzParseNodes: no file causes a panic, and the addresses of an accepted file can be called.
func FuzzParseNodes(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("regions: {us: [{name: n, http: h:2}]}"))
	f.Add([]byte("? [a]\n: &b {<<: *b}"))
	f.Add([]byte("regions:\n  us:\n" + strings.Repeat("    - {}\n", 60)))
	f.Fuzz(func(t *testing.T, src []byte) {
		nodes, err := ParseNodes("nodes.yaml", src)
		if err != nil {
			return
		}
		if len(nodes.Regions) == 0 {
			t.Error("no region")
		}
		for _, r := range nodes.Regions {
			if len(r.Nodes) == 0 {
				t.Errorf("region %q has no node", r.Name)
			}
			for _, n := range r.Nodes {
				_, asked := callable(n.HTTP)
				_, operated := callable(n.Admin)
				if n.Name == "" || !asked || !operated {
					t.Errorf("%+v is a node", n)
				}
			}
		}
	})
}
