package nodeconfig

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy/strictyaml"
)

// given is what a user gives: a node file, variables and flags.
type given struct {
	file  string
	env   map[string]string
	flags []string
}

// required is the smallest set of settings of a node.
const required = "region: us-east\nnode: n1\ndata_dir: data\npolicy: limits.yaml\nredis: {embedded: true}\n"

func (g given) configure(t *testing.T) (*Config, error) {
	t.Helper()
	path := ""
	if g.file != "" {
		path = filepath.Join(t.TempDir(), "node.yaml")
		suite.Must(t, os.WriteFile(path, []byte(g.file), 0o600))
	}
	set := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	layers := AddFlags(set, func(name string) (string, bool) {
		text, ok := g.env[name]
		return text, ok
	})
	suite.Must(t, set.Parse(append(slices.Clone(g.flags), "--config="+path)))
	return layers.Read()
}

func TestFlagsGoBeforeVariablesBeforeTheFile(t *testing.T) {
	const a, b, c = "127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"
	tests := map[string]struct {
		file, variable, flag string
		get                  func(c *Config) any
		// what each of the three is read as; empty: as it was written
		want [3]string
	}{
		"region": {"a", "b", "c",
			func(c *Config) any { return c.Region }, [3]string{}},
		"node": {"a", "b", "c", func(c *Config) any { return c.Node },
			[3]string{}},
		"nodes": {"2", "3", "4",
			func(c *Config) any { return c.Nodes }, [3]string{}},
		"data_dir": {"/a", "/b", "/c",
			func(c *Config) any { return c.DataDir }, [3]string{}},
		"policy": {"/a", "/b", "/c",
			func(c *Config) any { return c.Policy }, [3]string{}},
		"redis.url": {"redis://" + a, "redis://" + b, "rediss://" + c,
			func(c *Config) any { return c.Redis.URL }, [3]string{}},
		"redis.embedded": {"true", "true", "true",
			func(c *Config) any { return c.Redis.Embedded }, [3]string{}},
		"listen.grpc": {a, b, c,
			func(c *Config) any { return c.Listen.GRPC }, [3]string{}},
		"listen.http": {a, b, c,
			func(c *Config) any { return c.Listen.HTTP }, [3]string{}},
		"listen.admin": {a, b, c,
			func(c *Config) any { return c.Listen.Admin }, [3]string{}},
		"listen.peer": {a, b, c,
			func(c *Config) any { return c.Listen.Peer }, [3]string{}},
		"listen.gossip": {a, b, "localhost:3",
			func(c *Config) any { return c.Listen.Gossip }, [3]string{a, b, c}},
		"listen.max_connections": {"1", "2", "1000000",
			func(c *Config) any { return c.Limits.Connections }, [3]string{}},
		"listen.max_connections_per_address": {"1", "2", "1000000",
			func(c *Config) any { return c.Limits.PerAddress }, [3]string{}},
		"listen.hosts": {"[A.example]", "x,y.example", "z", func(c *Config) any { return c.Hosts },
			[3]string{"[a.example]", "[x y.example]", "[z]"}},
		"headers.http": {"ietf", "legacy", "off", func(c *Config) any { return c.Headers.HTTP },
			[3]string{}},
		"headers.envoy": {"ietf", "legacy", "both", func(c *Config) any { return c.Headers.Envoy },
			[3]string{}},
		"headers.max_rate": {"0", "1", "1000", func(c *Config) any { return c.Headers.MaxRate },
			[3]string{}},
		"advertise.peer": {a, b, c, func(c *Config) any { return c.Advertise.Peer }, [3]string{}},
		"advertise.gossip": {a, b, c, func(c *Config) any { return c.Advertise.Gossip },
			[3]string{}},
		"seeds": {"[x:1]", "x:1, y:2", "z:3", func(c *Config) any { return c.Seeds },
			[3]string{"[x:1]", "[x:1 y:2]", "[z:3]"}},
		"redis.timeout": {"20ms", "30ms", "40ms", func(c *Config) any { return c.Redis.Timeout },
			[3]string{}},
		"redis.tls.ca": {"/a", "/b", "/c", func(c *Config) any { return c.Redis.TLS.CA },
			[3]string{}},
		"redis.tls.cert": {"/a", "/b", "/c", func(c *Config) any { return c.Redis.TLS.Cert },
			[3]string{}},
		"redis.tls.key": {"/a", "/b", "/c", func(c *Config) any { return c.Redis.TLS.Key },
			[3]string{}},
		"peer_tls.cert": {"/a", "/b", "/c", func(c *Config) any { return c.PeerTLS.Cert },
			[3]string{}},
		"peer_tls.key": {"/a", "/b", "/c", func(c *Config) any { return c.PeerTLS.Key },
			[3]string{}},
		"peer_tls.ca": {"/a", "/b", "/c", func(c *Config) any { return c.PeerTLS.CA }, [3]string{}},
		"gossip_keys": {"[" + key('A') + "]", key('B') + "," + key('A'), key('C'),
			func(c *Config) any { return string(bytes.Join(c.GossipKeys, []byte(" "))) },
			[3]string{strings.Repeat("A", 16), strings.Repeat("B", 16) + " " + strings.Repeat("A",
				16), strings.Repeat("C", 16)}},
		"api_tls.cert": {"/a", "/b", "/c", func(c *Config) any { return c.APITLS.Cert },
			[3]string{}},
		"api_tls.key": {"/a", "/b", "/c", func(c *Config) any { return c.APITLS.Key },
			[3]string{}},
		"api_tls.ca": {"/a", "/b", "/c", func(c *Config) any { return c.APITLS.CA },
			[3]string{}},
		"admin_tls.cert": {"/a", "/b", "/c", func(c *Config) any { return c.AdminTLS.Cert },
			[3]string{}},
		"admin_tls.key": {"/a", "/b", "/c", func(c *Config) any { return c.AdminTLS.Key },
			[3]string{}},
		"admin_tls.ca": {"/a", "/b", "/c", func(c *Config) any { return c.AdminTLS.CA },
			[3]string{}},
		"authz": {"/a", "/b", "/c", func(c *Config) any { return c.Authz }, [3]string{}},
		"roles": {"/a", "/b", "/c", func(c *Config) any { return c.Roles }, [3]string{}},
		"audit": {"/a", "stderr", "/c", func(c *Config) any { return c.AuditFile() },
			[3]string{}},
		"bootstrap": {"true", "false", "alone", func(c *Config) any { return int(c.Bootstrap) },
			[3]string{"1", "0", "2"}},
		"insecure": {"true", "false", "api, gossip",
			func(c *Config) any { return c.Insecure }, [3]string{"{true true true true}",
				"{false false false false}", "{true false false true}"}},
		"log_level": {"debug", "warn", "error", func(c *Config) any { return c.LogLevel },
			[3]string{"DEBUG", "WARN", "ERROR"}},
		"wait": {"10ms", "2s", "3s", func(c *Config) any { return c.Wait }, [3]string{}},
		"remember": {"1000", "2000", "100000000", func(c *Config) any { return c.Remember },
			[3]string{}},
		"drain_timeout": {"1s", "2s", "3s", func(c *Config) any { return c.DrainTimeout },
			[3]string{}},
		"traces.endpoint": {"localhost:1", "127.0.0.1:2", "[::1]:3",
			func(c *Config) any { return c.Traces.Endpoint }, [3]string{}},
		"traces.sample": {"0", "0.5", "1", func(c *Config) any { return c.Traces.Sample },
			[3]string{}},
		"traces.ca": {"/a", "/b", "/c", func(c *Config) any { return c.Traces.CA }, [3]string{}},
		"chaos": {"enabled", "disabled", "true", func(c *Config) any { return c.Chaos },
			[3]string{"true", "false", "true"}},
		"trust_clock": {"true", "false", "true", func(c *Config) any { return c.TrustClock },
			[3]string{}},
		"forget_store_time": {"true", "false", "true", func(c *Config) any { return c.ForgetStoreTime },
			[3]string{}},
	}
	// The other settings without which a setting is useless.
	also := map[string][]string{
		"peer_tls.cert": {"--peer-tls-key=k", "--peer-tls-ca=a"},
		"peer_tls.key":  {"--peer-tls-cert=c", "--peer-tls-ca=a"},
		"peer_tls.ca":   {"--peer-tls-cert=c", "--peer-tls-key=k"},
		"api_tls.cert":  {"--api-tls-key=k"}, "api_tls.key": {"--api-tls-cert=c"},
		"api_tls.ca":     {"--api-tls-cert=c", "--api-tls-key=k"},
		"admin_tls.cert": {"--admin-tls-key=k"}, "admin_tls.key": {"--admin-tls-cert=c"},
		"admin_tls.ca":  {"--admin-tls-cert=c", "--admin-tls-key=k"},
		"redis.timeout": {"--redis-url=redis://h"},
		"traces.ca":     {"--traces-endpoint=collector.example.com:4317"},
		"redis.tls.ca":  {"--redis-url=rediss://h"}, "redis.tls.cert": {"--redis-url=rediss://h",
			"--redis-tls-key=k"},
		"redis.tls.key": {"--redis-url=rediss://h", "--redis-tls-cert=c"},
	}
	for _, s := range Settings() {
		test, ok := tests[s.Path]
		if !ok {
			t.Errorf("%s is not tested", s.Path)
			continue
		}
		file, env := withSetting(s, test.file), map[string]string{s.Variable(): test.variable}
		layers := []given{
			{file: file, flags: also[s.Path]},
			{file: file, flags: also[s.Path], env: env},
			{file: file, flags: append(also[s.Path], "--"+s.Flag()+"="+test.flag), env: env},
		}
		for i, written := range []string{test.file, test.variable, test.flag} {
			want := cmp.Or(test.want[i], written)
			c, err := layers[i].configure(t)
			if err != nil {
				t.Errorf("%s, layer %d: %v", s.Path, i, err)
			} else if got := fmt.Sprint(test.get(c)); got != want {
				t.Errorf("%s, layer %d: got %s, want %s", s.Path, i, got, want)
			}
		}
	}
}

// key is a gossip key of 16 equal bytes.
func key(b byte) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 16)) }

// withSetting returns the smallest node file with one setting added or replaced.
func withSetting(s Setting, text string) string {
	root, field, grouped := strings.Cut(s.Path, ".")
	line := fmt.Sprintf("%s: %s\n", root, text)
	if grouped {
		if !strings.HasPrefix(text, "[") || !s.list { // a list is no text
			text = strconv.Quote(text)
		}
		line = fmt.Sprintf("%s: {%s: %s}\n", root, field, text)
		if group, field, nested := strings.Cut(field, "."); nested {
			line = fmt.Sprintf("%s: {%s: {%s: %s}}\n", root, group, field, text)
		}
	}
	for other := range strings.Lines(required) {
		if !strings.HasPrefix(other, root+":") {
			line += other
		}
	}
	return line
}

// TestGoneSettings: a setting of before is refused with the one to use now.
func TestGoneSettings(t *testing.T) {
	for _, test := range []struct {
		given given
		want  string
	}{
		{given{file: required + "remember: {buckets: 5000, uses: 2000}\n"}, "write it like remember: number"},
		{given{file: required + "request_id_repeats: 5\n"}, "request_id_repeats: no such field"},
		{given{file: required, env: map[string]string{"QUOTAD_REMEMBER_BUCKETS": "5000"}}, "QUOTAD_REMEMBER_BUCKETS: there is no such setting any more; set QUOTAD_REMEMBER"},
		{given{file: required, env: map[string]string{"QUOTAD_REMEMBER_USES": "5000"}}, "QUOTAD_REMEMBER_USES: there is no such setting any more; set QUOTAD_REMEMBER, to four times"},
		{given{file: required, env: map[string]string{"QUOTAD_REQUEST_ID_REPEATS": "5"}}, "QUOTAD_REQUEST_ID_REPEATS: there is no such setting any more; a request is repeated three times"},
	} {
		if _, err := test.given.configure(t); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
}

func TestDefaults(t *testing.T) {
	c, err := given{file: required}.configure(t)
	suite.Must(t, err)
	for _, test := range []struct{ name, got, want string }{
		{"grpc", c.Listen.GRPC.String(), "127.0.0.1:8081"},
		{"http", c.Listen.HTTP.String(), "127.0.0.1:8080"},
		{"peer", c.Listen.Peer.String(), "127.0.0.1:8082"},
		{"gossip", c.Listen.Gossip.String(), "127.0.0.1:7946"},
		{"connections", fmt.Sprint(c.Limits), "{2048 1024}"},
		{"nodes", fmt.Sprint(c.Nodes), "1"},
		{"log level", c.LogLevel.String(), slog.LevelInfo.String()},
		{"drain", c.DrainTimeout.String(), (10 * time.Second).String()},
		{"policy", filepath.Base(c.Policy), "limits.yaml"},
	} {
		if test.got != test.want {
			t.Errorf("%s is %s, want %s", test.name, test.got, test.want)
		}
	}
	if !filepath.IsAbs(c.Policy) || !filepath.IsAbs(c.DataDir) {
		t.Errorf("paths %s and %s do not start from the node file", c.Policy, c.DataDir)
	}
}

func TestTheNodeIsNamedAfterItsHost(t *testing.T) {
	c, err := given{file: strings.Replace(required, "node: n1\n", "", 1)}.configure(t)
	suite.Must(t, err)
	if host, _ := os.Hostname(); c.Node != host {
		t.Errorf("node %q, want %q", c.Node, host)
	}
}

func TestPathsOfFlagsStartFromTheWorkingDirectory(t *testing.T) {
	c, err := given{file: required, flags: []string{"--policy", "p.yaml"},
		env: map[string]string{"QUOTAD_DATA_DIR": "d"}}.configure(t)
	suite.Must(t, err)
	if c.Policy != "p.yaml" || c.DataDir != "d" {
		t.Errorf("policy %s, data_dir %s", c.Policy, c.DataDir)
	}
}

func TestRedisOfTheHigherLayerCounts(t *testing.T) {
	withURL := strings.Replace(required, "embedded: true", `url: "redis://127.0.0.1:1"`, 1)
	for _, test := range []struct {
		name     string
		given    given
		embedded bool
		problem  string
	}{
		{"flag over file", given{file: withURL, flags: []string{"--redis-embedded"}}, true, ""},
		{"variable over file",
			given{file: required,
				env: map[string]string{"QUOTAD_REDIS_URL": "redis://127.0.0.1:1"}}, false, ""},
		{"variable below flag", given{flags: []string{"--redis-url=redis://127.0.0.1:1"},
			file: required,
			env:  map[string]string{"QUOTAD_REDIS_EMBEDDED": "true"}}, false, ""},
		{"both in one place",
			given{file: strings.Replace(required, "embedded: true",
				`embedded: true, url: "redis://127.0.0.1:1"`, 1)},
			false, "node.yaml:5:19: redis.embedded: redis.url is given as well; keep one of the two"},
	} {
		c, err := test.given.configure(t)
		switch {
		case test.problem != "":
			if err == nil || !strings.Contains(err.Error(), test.problem) {
				t.Errorf("%s: %v, want %s", test.name, err, test.problem)
			}
		case err != nil:
			t.Errorf("%s: %v", test.name, err)
		case c.Redis.Embedded != test.embedded:
			t.Errorf("%s: embedded %t", test.name, c.Redis.Embedded)
		}
	}
}

func TestBadValuesAreToldWithTheirPlace(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	suite.Must(t, os.WriteFile(empty, nil, 0o600))
	for _, test := range []struct{ flag, want string }{
		{"--region=", `--region: "" is not a valid name; use 1 to 63`},
		{"--node=a/b", `--node: "a/b" is not a valid name`},
		{"--nodes=0", `--nodes: "0" is no number of nodes`},
		{"--nodes=1e3", `--nodes: "1e3" is no number of nodes`},
		{"--data-dir=", "--data-dir: it is empty; write a path"},
		{"--redis-url=127.0.0.1:6379", "--redis-url: this is not the URL of a Redis"},
		{"--redis-url=redis://u:secret@[", "--redis-url: this is not the URL of a Redis"},
		{"--redis-url=redis://u:secret@host/x",
			"--redis-url: this is not the URL of a Redis: the database is not a number"},
		{"--redis-url=redis+sentinel://u:secret@h1:26379,h2",
			"does not say behind the Sentinels by which name they know the master"},
		{"--redis-url=redis+cluster://u:secret@h1:7000,h2:x",
			"server 2 is not host:port; write it like redis://"},
		{"--redis-tls-ca=ca.pem --redis-url=redis://h",
			"--redis-tls-ca: redis.url is one without TLS; begin it with rediss, or remove redis.tls"},
		{"--redis-tls-key=k --redis-url=rediss://h",
			"--redis-tls-key: of no use without redis.tls.cert; set redis.tls.cert in the node file, or --redis-tls-cert"},
		{"--peer-tls-key=k",
			"--peer-tls-key: of no use without peer_tls.cert and peer_tls.ca; set peer_tls.cert in the node file, or --peer-tls-cert"},
		{"--traces-sample=1.1", `--traces-sample: "1.1" is not a part of a whole; write a number from 0 to 1`},
		{"--traces-sample=NaN", `--traces-sample: "NaN" is not a part of a whole`},
		{"--traces-endpoint=127.0.0.1", `--traces-endpoint: "127.0.0.1" is not host:port`},
		{"--traces-endpoint=10.0.0.1:4317",
			`--traces-endpoint: "10.0.0.1:4317" is not on loopback, and without traces.ca spans go in plain text to whoever answers there; set traces.ca`},
		{"--traces-ca=ca.pem", "--traces-ca: of no use without traces.endpoint; set traces.endpoint"},
		{"--listen-http=8080", `--listen-http: "8080" is not host:port`},
		{"--listen-max-connections=0", `--listen-max-connections: "0" is no number of connections`},
		{"--listen-max-connections=-1",
			`--listen-max-connections: "-1" is no number of connections`},
		{"--listen-max-connections-per-address=1e3",
			`--listen-max-connections-per-address: "1e3" is no number of connections`},
		{"--listen-http=127.0.0.1:http", `--listen-http: "http" is not a port`},
		{"--advertise-peer=[::]:8082", "--advertise-peer: :: means every address of this machine"},
		{"--advertise-gossip=h:0", `--advertise-gossip: "0" is not a port others can call`},
		{"--seeds=a:1,b", `--seeds: "b" is not host:port`},
		{"--gossip-keys=?", "--gossip-keys: the key is not base64; make one with: quotad keys gossip"},
		{"--gossip-keys=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "--gossip-keys: the key is all zeros, which anybody can guess; make one with: quotad keys gossip"},
		{"--gossip-keys=" + key('A') + ",c2VjcmV0",
			"--gossip-keys: the key has 6 bytes, not 16, 24 or 32"},
		{"--gossip-keys=file:nowhere",
			"--gossip-keys: open nowhere: no such file or directory; check the path"},
		{"--gossip-keys=file:" + empty,
			"--gossip-keys: the file is empty; write one key on a line"},
		{"--gossip-keys=file:/dev/null",
			"--gossip-keys: \"/dev/null\" is a device: not a regular file; check the path"},
		{"--gossip-keys=" + strings.Repeat(key('A')+",", 8) + key('B'),
			"--gossip-keys: there are 9 keys, and at most 8 can be in force"},
		{"--bootstrap=maybe", `--bootstrap: "maybe" is none of true, false and alone`},
		{"--log-level=loud", `--log-level: "loud" is not a log level`},
		{"--drain-timeout=11m", `--drain-timeout: "11m" is not a duration from 0s to 10m`},
		{"--listen-peer=10.0.0.1:8082",
			"--listen-peer: 10.0.0.1:8082 is not on loopback, and without peer_tls calls"},
		{"--listen-gossip=10.0.0.1:7946",
			"--listen-gossip: 10.0.0.1:7946 is not on loopback, and without gossip_keys gossip"},
		{"--listen-http=10.0.0.1:80",
			"--listen-http: 10.0.0.1:80 is not on loopback, and without api_tls and roles anybody " +
				"may call it; set api_tls and roles, listen on 127.0.0.1, or give --insecure=api"},
		{"--listen-grpc=10.0.0.1:80 --api-tls-cert=c --api-tls-key=k",
			"--listen-grpc: 10.0.0.1:80 is not on loopback, and without api_tls and roles anybody"},
		{"--listen-grpc=10.0.0.1:80 --roles=r",
			"--listen-grpc: 10.0.0.1:80 is not on loopback, and without api_tls tokens, decisions " +
				"and keys go in plain text"},
		{"--listen-admin=:80 --insecure=api,peer,gossip",
			"--listen-admin: [::]:80 is not on loopback, and without admin_tls and roles anybody"},
		{"--listen-admin=10.0.0.1:80 --api-tls-cert=c --api-tls-key=k --roles=r",
			"--listen-admin: 10.0.0.1:80 is not on loopback, and without admin_tls tokens"},
		{"--listen-peer=10.0.0.1:8082 --insecure=api,admin,gossip",
			"give --insecure=peer if only quotad can reach it"},
		{"--insecure=http", `--insecure: "http" is no listener; write api, admin, peer or gossip`},
		{"--api-tls-ca=a", "--api-tls-ca: of no use without api_tls.cert"},
		{"--admin-tls-key=a", "--admin-tls-key: of no use without admin_tls.cert"},
	} {
		_, err := given{file: required, flags: strings.Fields(test.flag)}.configure(t)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.flag, err, test.want)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error tells a password: %v", test.flag, err)
		}
	}
}

// TestCallersPorts: the API and the admin listener open beyond loopback with TLS and a way to ask
// who calls, or where the operator says that they may be insecure, which is warned of.
func TestCallersPorts(t *testing.T) {
	for _, test := range []struct{ flags, warning string }{
		{"--listen-http=10.0.0.1:80 --api-tls-cert=c --api-tls-key=k --api-tls-ca=a", ""},
		{"--listen-grpc=10.0.0.1:80 --api-tls-cert=c --api-tls-key=k --roles=r", ""},
		{"--listen-admin=10.0.0.1:80 --admin-tls-cert=c --admin-tls-key=k --roles=r", ""},
		{"--listen-admin=10.0.0.1:80 --admin-tls-cert=c --admin-tls-key=k --roles=r --insecure", ""},
		{"--listen-http=10.0.0.1:80 --insecure=api", "the API is insecure: whoever reaches 10.0.0.1:80"},
		{"--listen-admin=10.0.0.1:80 --insecure=admin",
			"the admin listener is insecure: whoever reaches 10.0.0.1:80"},
		{"--insecure", ""},
	} {
		c, err := given{file: required, flags: strings.Fields(test.flags)}.configure(t)
		if err != nil {
			t.Errorf("%s: %v", test.flags, err)
			continue
		}
		all := strings.Join(c.Warnings(), "\n")
		if strings.Contains(all, "is insecure") != (test.warning != "") ||
			!strings.Contains(all, test.warning) {
			t.Errorf("%s: warned that %s, want %q", test.flags, all, test.warning)
		}
	}
}

// TestGuardsOpenThePorts: with certificates calls between regions may come from anywhere, and with
// keys gossip may. Protected ports cause no warning. Without both, and beyond loopback, others prove
// nothing.
func TestGuardsOpenThePorts(t *testing.T) {
	tls := []string{"--listen-peer=10.0.0.1:8082", "--peer-tls-cert=c", "--peer-tls-key=k",
		"--peer-tls-ca=a"}
	keys := []string{"--listen-gossip=10.0.0.1:7946", "--gossip-keys=" + key('A')}
	for _, test := range []struct {
		name     string
		flags    []string
		warnings []string // of these three
	}{
		{"both", append(slices.Clone(tls), keys...), nil},
		{"calls", tls, []string{"gossip is in plain text"}},
		{"gossip", keys, nil},
		{"neither", []string{"--insecure", "--listen-peer=10.0.0.1:8082"},
			[]string{"gossip is in plain text", "calls between regions are in plain text", "anybody could pass for another node"}},
		{"neither, on loopback", nil, []string{"gossip is in plain text"}},
		{"neither, and only gossip beyond", []string{"--insecure", "--listen-gossip=10.0.0.1:7946"},
			[]string{"gossip is in plain text", "anybody could pass for another node"}},
	} {
		c, err := given{file: required, flags: test.flags}.configure(t)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		all := strings.Join(c.Warnings(), "\n")
		for _, warning := range []string{"gossip is in plain text",
			"calls between regions are in plain text", "anybody could pass for another node"} {
			if got := strings.Contains(all, warning); got != slices.Contains(test.warnings,
				warning) {
				t.Errorf("%s: warned that %s: %t", test.name, warning, got)
			}
		}
		if got := slices.Contains(test.warnings, "anybody could pass for another node"); c.Unproven() != got {
			t.Errorf("%s: unproven is %t", test.name, c.Unproven())
		}
	}
}

// TestGossipKeysOfAFile: a file holds one key on each line, of which the first encrypts. Keys can
// be given beside the file.
func TestGossipKeysOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	suite.Must(t, os.WriteFile(path, []byte(key('A')+"\n"+key('B')+"\n\n"), 0o600))
	c, err := given{file: required, flags: []string{"--gossip-keys=file:" + path, "--gossip-keys=" +
		key('C')}}.configure(t)
	suite.Must(t, err)
	var first []byte
	for _, k := range c.GossipKeys {
		first = append(first, k[0])
	}
	if string(first) != "ABC" {
		t.Errorf("keys %q", first)
	}
}

// TestUnknownFieldsAreRefused adds an unknown field to any group. The error must name its line.
func TestUnknownFieldsAreRefused(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z_]{1,12}`).Draw(t, "name") + "_"
		group := rapid.SampledFrom([]string{"", "redis", "listen", "advertise", "peer_tls"}).Draw(t,
			"group")
		line, want := name+": 1\n", "node.yaml:2:1: "+name
		if group != "" {
			line, want = fmt.Sprintf("%s:\n  %s: 1\n", group, name), fmt.Sprintf("node.yaml:3:3: %s.%s", group, name)
		}
		want += ": no such field; " + strictyaml.DidYouMean(name, fieldsOf(Settings(), group))
		_, err := parseFile("node.yaml", []byte("nodes: 2\n"+line), Settings())
		if err == nil || err.Error() != want {
			t.Fatalf("%v, want %s", err, want)
		}
	})
}

// FuzzNodeFile looks for a file that breaks the reader, or whose problems have no place.
func FuzzNodeFile(f *testing.F) {
	for _, seed := range []string{required, "", "listen:", "seeds: [a, 1, {}]", "region: &a x\nnode: *a", "a: b: c", "- x",
		"region: x\n---\nregion: y", "region: x\nregion: y", "<<: {}", "? a\n: b", "redis: {url: [", "\t", "region: |\n  x"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		values, err := parseFile("node.yaml", src, Settings())
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "node.yaml:") {
					t.Errorf("no place: %s", line)
				}
			}
		}
		for _, s := range Settings() {
			if all := values[s.Path]; !s.list && len(all) > 1 {
				t.Errorf("%s has %d values", s.Path, len(all))
			}
		}
	})
}
