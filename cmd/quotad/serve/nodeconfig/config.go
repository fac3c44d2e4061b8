package nodeconfig

import (
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/base/door"
	"github.com/quotad/quotad/region/base/ratelimit"
	"github.com/quotad/quotad/region/front/callers"
	"github.com/quotad/quotad/region/trade/peer"
)

// Config holds the settings of a node.
type Config struct {
	Region, Node string
	Nodes        int
	DataDir      string
	Policy       string // path of the limits document
	Redis        struct {
		URL      string
		Embedded bool
		Timeout  time.Duration
		TLS      peer.Files // for calls to the Redis
	}
	Listen struct{ GRPC, HTTP, Admin, Peer, Gossip netip.AddrPort }
	// Limits are the same for each of four ports: the gRPC API, the HTTP API, the admin listener
	// and other regions.
	Limits door.Limits
	// Hosts are names by which callers may call listeners on loopback, in lower case.
	Hosts []string
	// Advertise holds host:port of both. Empty: where the node listens.
	Advertise struct{ Peer, Gossip string }
	Headers   struct {
		HTTP, Envoy callers.Headers
		MaxRate     int // see callers.Options
	}
	Authz            string // path of the mapping of proxies' requests; empty: there is none
	Seeds            []string
	PeerTLS          peer.Files // empty: plain text
	GossipKeys       [][]byte   // none: plain text
	APITLS, AdminTLS peer.Files // empty: plain text; without CA nobody shows a certificate
	Roles            string     // path of the roles file; empty: there are no roles
	Audit            string     // path of the audit log, AuditStderr, or empty: see AuditFile
	Bootstrap        Bootstrap
	Insecure         Insecure
	LogLevel         slog.Level
	Wait             time.Duration
	Remember         int // of how many buckets a node notes that it used them
	DrainTimeout     time.Duration
	// Traces says who is told of decisions. Without Endpoint nobody is; without CA in plain text.
	Traces struct {
		Endpoint string  // host:port
		Sample   float64 // part of the calls, from 0 to 1
		CA       string  // path
	}
	Chaos bool
	// TrustClock says that the store is opened though this machine's clock is ahead of all others.
	TrustClock bool
	// ForgetStoreTime says that this node forgets that its store's time was ahead of its clock.
	ForgetStoreTime bool

	given map[string]place // where each setting was given, by path
}

// Bootstrap reports whether the region is taken to have no data to lose. The zero value says no.
type Bootstrap int

// Whether the region is taken to have no data to lose.
const (
	BootstrapAsks  Bootstrap = iota + 1 // yes, unless another node knows better
	BootstrapAlone                      // yes, and nobody is asked
)

// Setting is one setting of a node. It can be given as a field of the node file, an environment
// variable or a flag. Their names are derived from Path.
type Setting struct {
	Path    string // in the node file, such as listen.grpc
	Kind    string // what the value is, in one word, for the help
	Default string // the text of the default value; empty: none
	reader
	Usage string
}

// Settings returns all settings, in the order of the node file.
func Settings() []Setting { return new(Config).settings() }

// settings names, documents and defaults each setting, and says how it is read and into which
// field.
func (c *Config) settings() []Setting {
	return slices.Concat(c.nodeSettings(), c.redisSettings(), c.networkSettings(),
		c.trustSettings(), c.runningSettings())
}

// nodeSettings returns the settings that identify the node.
func (c *Config) nodeSettings() []Setting {
	return []Setting{
		{"region", "name", "", one(&c.Region, name),
			"region of this node, as the limits document names it"},
		{"node", "name", "", one(&c.Node, name),
			"name of this node, unique in its region (default: the host name)"},
		{"nodes", "number", "1", one(&c.Nodes, number("nodes", 1, region.MaxNodes)),
			"how many nodes the region has"},
		{"data_dir", "folder", "", one(&c.DataDir, filePath),
			"folder of the journal, made if it is missing"},
		{"policy", "file", "", one(&c.Policy, filePath),
			"limits document; relative to the node file if set there"},
	}
}

// redisSettings returns the settings about the region's Redis.
func (c *Config) redisSettings() []Setting {
	return []Setting{
		{"redis.url", "url", "", one(&c.Redis.URL, redisURL),
			"the region's Redis: redis://[user:password@]host:port[/db], " +
				"redis+sentinel://host:port,.../master or redis+cluster://host:port,...; rediss " +
				"for TLS"},
		{"redis.embedded", "bool", "", one(&c.Redis.Embedded, boolean),
			"run a Redis inside this process, which keeps nothing: not for production"},
		{"redis.timeout", "duration", "50ms",
			one(&c.Redis.Timeout, duration(minTimeout, maxTimeout, "50ms")),
			"how long the Redis may take to answer: then, or once it fails, on_store_failure " +
				"decides"},
		{"redis.tls.ca", "file", "", one(&c.Redis.TLS.CA, filePath),
			"certificates of the authorities that the Redis may be of (default: those of the " +
				"system)"},
		{"redis.tls.cert", "file", "", one(&c.Redis.TLS.Cert, filePath),
			"certificate to show to the Redis"},
		{"redis.tls.key", "file", "", one(&c.Redis.TLS.Key, filePath),
			"key of redis.tls.cert"},
	}
}

// networkSettings returns the settings about the addresses of this node and of others.
func (c *Config) networkSettings() []Setting {
	return []Setting{
		{"listen.grpc", "host:port", "127.0.0.1:8081", one(&c.Listen.GRPC, listener),
			"where the gRPC API listens"},
		{"listen.http", "host:port", "127.0.0.1:8080", one(&c.Listen.HTTP, listener),
			"where the HTTP API listens"},
		{"listen.admin", "host:port", "127.0.0.1:8083", one(&c.Listen.Admin, listener),
			"where operators are served, over HTTP: status, metrics, reset, cuts"},
		{"listen.peer", "host:port", "127.0.0.1:8082", one(&c.Listen.Peer, listener),
			"where other regions' nodes are served"},
		{"listen.gossip", "host:port", "127.0.0.1:7946", one(&c.Listen.Gossip, listener),
			"where gossip listens, TCP and UDP"},
		{"listen.max_connections", "number", "2048",
			one(&c.Limits.Connections, number("connections", 1, maxConnections)),
			"how many connections each of grpc, http, admin and peer may have open; more are closed at " +
				"once"},
		{"listen.max_connections_per_address", "number", "1024",
			one(&c.Limits.PerAddress, number("connections", 1, maxConnections)),
			"how many of them one IPv4 address or one IPv6 network of 64 bits may have open; behind a " +
				"proxy all callers have its address: give listen.max_connections there"},
		{"listen.hosts", "name", "", each(&c.Hosts, hostName),
			"names by which callers may call listen.http and listen.admin on loopback where there are no " +
				"roles, beside localhost and loopback addresses, so that no page of another site calls " +
				"them; /v1/authz takes any"},
		{"headers.http", "headers", "both", one(&c.Headers.HTTP, headers),
			"headers of decisions over HTTP: ietf (RateLimit, RateLimit-Policy), legacy " +
				"(X-RateLimit-*), both, or off; a denial has Retry-After in any case"},
		{"headers.envoy", "headers", "off", one(&c.Headers.Envoy, headers),
			"headers that Envoy is told to add to its answers, as headers.http; it can make " +
				"X-RateLimit-* and Retry-After by itself"},
		{"headers.max_rate", "number", strconv.Itoa(ratelimit.DefaultMaxRate),
			one(&c.Headers.MaxRate, number("times", 0, ratelimit.MaxMaxRate)),
			"how many times its average rate RateLimit may suggest of a limit with a window of a day or " +
				"longer; 0: no bound"},
		{"advertise.peer", "host:port", "", one(&c.Advertise.Peer, address),
			"where other regions reach listen.peer (default: the same)"},
		{"advertise.gossip", "host:port", "", one(&c.Advertise.Gossip, address),
			"where other nodes reach listen.gossip (default: the same)"},
		{"seeds", "host:port", "", each(&c.Seeds, address),
			"gossip addresses of some other nodes; repeat it or separate them with commas"},
	}
}

// trustSettings returns the settings about whom and what the node trusts.
func (c *Config) trustSettings() []Setting {
	return []Setting{
		{"peer_tls.cert", "file", "", one(&c.PeerTLS.Cert, filePath),
			"this node's certificate for calls between regions; its URI says quotad://REGION/NODE"},
		{"peer_tls.key", "file", "", one(&c.PeerTLS.Key, filePath),
			"key of peer_tls.cert"},
		{"peer_tls.ca", "file", "", one(&c.PeerTLS.CA, filePath),
			"certificates of the authorities that other regions' nodes may be of"},
		{"gossip_keys", "key", "", keys(&c.GossipKeys),
			"base64 of 16, 24 or 32 bytes, or file:PATH of a file with one on a line; the first " +
				"encrypts, all decrypt"},
		{"api_tls.cert", "file", "", one(&c.APITLS.Cert, filePath),
			"certificate that listen.grpc and listen.http show to callers"},
		{"api_tls.key", "file", "", one(&c.APITLS.Key, filePath),
			"key of api_tls.cert"},
		{"api_tls.ca", "file", "", one(&c.APITLS.CA, filePath),
			"certificates of the authorities that callers' certificates may be of; never the one " +
				"of peer_tls (default: callers show none)"},
		{"admin_tls.cert", "file", "", one(&c.AdminTLS.Cert, filePath),
			"certificate that listen.admin shows to operators"},
		{"admin_tls.key", "file", "", one(&c.AdminTLS.Key, filePath),
			"key of admin_tls.cert"},
		{"admin_tls.ca", "file", "", one(&c.AdminTLS.CA, filePath),
			"certificates of the authorities that operators' certificates may be of (default: " +
				"they show none)"},
		{"roles", "file", "", one(&c.Roles, filePath),
			"who may do what, by token or certificate (default: who may call a port may do all " +
				"that it serves)"},
		{"authz", "file", "", one(&c.Authz, filePath),
			"what requests of proxies at /v1/authz are described by: trusted addresses and rules; " +
				"read at the start"},
		{"audit", "file", "", one(&c.Audit, auditPath),
			"where acts are written that can exceed or cut a limit, as JSON; or stderr (default: " +
				"audit.jsonl in data_dir)"},
		{"bootstrap", "bool", "", one(&c.Bootstrap, bootstrap),
			"this region never served before, so an empty Redis is no loss of data: true asks all " +
				"nodes that seeds lead to, and is refused if one knows the region to have a store, " +
				"or none answers; alone asks nobody, for the very first node of all"},
		{"insecure", "listeners", "", one(&c.Insecure, insecure),
			"api, admin, peer, gossip, several of them with commas, or true for all: listeners " +
				"that may be reached beyond loopback although nobody is asked who calls: a private " +
				"network only"},
	}
}

// runningSettings returns the settings about how the node runs.
func (c *Config) runningSettings() []Setting {
	return []Setting{
		{"log_level", "level", "info", one(&c.LogLevel, logLevel),
			"debug, info, warn or error"},
		{"wait", "duration", "1s", one(&c.Wait, duration(minTimeout, maxWait, "1s")),
			"how long a request over gRPC waits for its turn at the Redis whose caller names no " +
				"deadline"},
		{"remember", "number", "2000000",
			one(&c.Remember, number("buckets", minRemembered, maxRemembered)),
			"of how many buckets the node notes that it used them, 85 bytes of heap each; that " +
				"one beyond is deleted goes unnoticed, and after a loss it stays closed. Of a quarter " +
				"as many, of windows over a minute, it keeps the use in memory, 230 bytes more each; " +
				"that of others is in the journal alone"},
		{"drain_timeout", "duration", "10s", one(&c.DrainTimeout, duration(0, maxDrain, "10s")),
			"how long requests under way are waited for at the end"},
		{"traces.endpoint", "host:port", "", one(&c.Traces.Endpoint, address),
			"a collector that takes OTLP over gRPC, to which spans of decisions are sent (default: " +
				"nothing is traced); beyond loopback with traces.ca"},
		{"traces.sample", "part", "0.01", one(&c.Traces.Sample, part),
			"which part of the calls is traced, from 0 to 1; callers who send a traceparent choose " +
				"which, but not how many"},
		{"traces.ca", "file", "", one(&c.Traces.CA, filePath),
			"certificates of the authorities that the collector may be of (default: plain text)"},
		{"chaos", "bool", "", one(&c.Chaos, switched),
			"let whoever may operate this node cut it off from other " +
				"regions, and QUOTAD_FAILPOINT kill it, to rehearse faults: not for production"},
		{"trust_clock", "bool", "", one(&c.TrustClock, switched),
			"open the Redis though this machine's clock is over a minute ahead of all other nodes that " +
				"answer: if it is wrong, windows stand still until the others come there. Also open it " +
				"though its time is over a minute ahead of every clock: windows stand still until then"},
		{"forget_store_time", "bool", "", one(&c.ForgetStoreTime, switched),
			"forget that the time of this region's Redis was ahead of this machine's clock, once, at all " +
				"nodes of the region, after its Redis was emptied: windows until that time come once more"},
	}
}
