package nodeconfig

import (
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/door"
	"github.com/quotad/quotad/region/peer"
)

// Config says what a node is to be.
type Config struct {
	Region, Node string
	Nodes        int
	DataDir      string
	Policy       string // path of the limits document
	Redis        struct {
		URL      string
		Embedded bool
		Timeout  time.Duration
		TLS      peer.Files // what a Redis is called with
	}
	Listen              struct{ GRPC, HTTP, Peer, Gossip netip.AddrPort }
	Limits              door.Limits                   // of each port of the gRPC API, the HTTP API and other regions
	Advertise           struct{ Peer, Gossip string } // host:port; empty: where it listens
	Seeds               []string
	PeerTLS             peer.Files // empty: plain text
	GossipKeys          [][]byte   // none: plain text
	Bootstrap, Insecure bool
	LogLevel            slog.Level
	Repeats             int64
	Memory              region.Memory
	DrainTimeout        time.Duration
	Chaos               bool

	given map[string]place // of every setting that was given, by path
}

// Setting is one thing that can be set: a field of the node file, a variable of the environment
// and a flag, with names made from one another.
type Setting struct {
	Path    string // in the node file: listen.grpc
	Kind    string // what the value is, in one word, for the help
	Default string // the text that counts if nothing is given; empty: none
	Usage   string
	reader
}

// Settings are all that can be set, in the order of the node file.
func Settings() []Setting { return new(Config).settings() }

// settings names, documents and defaults each setting, and says how it is read and into which
// field.
func (c *Config) settings() []Setting {
	return slices.Concat(c.nodeSettings(), c.redisSettings(), c.networkSettings(),
		c.trustSettings(), c.runningSettings())
}

// nodeSettings say which node it is.
func (c *Config) nodeSettings() []Setting {
	return []Setting{
		{"region", "name", "",
			"region of this node, as the limits document names it",
			one(&c.Region, name)},
		{"node", "name", "",
			"name of this node, unique in its region (default: the host name)",
			one(&c.Node, name)},
		{"nodes", "number", "1",
			"how many nodes the region has",
			one(&c.Nodes, number("nodes", 1, MaxNodes))},
		{"data_dir", "folder", "",
			"folder of the journal, made if it is missing",
			one(&c.DataDir, filePath)},
		{"policy", "file", "",
			"limits document; relative to the node file if set there",
			one(&c.Policy, filePath)},
	}
}

// redisSettings are about the region's Redis.
func (c *Config) redisSettings() []Setting {
	return []Setting{
		{"redis.url", "url", "",
			"the region's Redis: redis://[user:password@]host:port[/db], " +
				"redis+sentinel://host:port,.../master or redis+cluster://host:port,...; rediss " +
				"for TLS",
			one(&c.Redis.URL, redisURL)},
		{"redis.embedded", "bool", "",
			"run a Redis inside this process, which keeps nothing: not for production",
			one(&c.Redis.Embedded, boolean)},
		{"redis.timeout", "duration", "50ms",
			"how long a decision may take: then, or once the Redis fails, on_store_failure " +
				"decides",
			one(&c.Redis.Timeout, duration(minTimeout, maxTimeout, "50ms"))},
		{"redis.tls.ca", "file", "",
			"certificates of the authorities that the Redis may be of (default: those of the " +
				"system)",
			one(&c.Redis.TLS.CA, filePath)},
		{"redis.tls.cert", "file", "",
			"certificate to show to the Redis",
			one(&c.Redis.TLS.Cert, filePath)},
		{"redis.tls.key", "file", "",
			"key of redis.tls.cert",
			one(&c.Redis.TLS.Key, filePath)},
	}
}

// networkSettings say where the node is reached and whom it looks for.
func (c *Config) networkSettings() []Setting {
	return []Setting{
		{"listen.grpc", "host:port", "127.0.0.1:8081",
			"where the gRPC API listens",
			one(&c.Listen.GRPC, listener)},
		{"listen.http", "host:port", "127.0.0.1:8080",
			"where the HTTP API listens",
			one(&c.Listen.HTTP, listener)},
		{"listen.peer", "host:port", "127.0.0.1:8082",
			"where other regions' nodes are served",
			one(&c.Listen.Peer, listener)},
		{"listen.gossip", "host:port", "127.0.0.1:7946",
			"where gossip listens, TCP and UDP",
			one(&c.Listen.Gossip, listener)},
		{"listen.max_connections", "number", "2048",
			"how many connections each of grpc, http and peer may have open; more are closed " +
				"at once",
			one(&c.Limits.Connections, number("connections", 1, maxConnections))},
		{"listen.max_connections_per_address", "number", "1024",
			"how many of them one IP address may have open; behind a proxy all callers have " +
				"its address: give listen.max_connections there",
			one(&c.Limits.PerAddress, number("connections", 1, maxConnections))},
		{"advertise.peer", "host:port", "",
			"where other regions reach listen.peer (default: the same)",
			one(&c.Advertise.Peer, address)},
		{"advertise.gossip", "host:port", "",
			"where other nodes reach listen.gossip (default: the same)",
			one(&c.Advertise.Gossip, address)},
		{"seeds", "host:port", "",
			"gossip addresses of some other nodes; repeat it or separate them with commas",
			each(&c.Seeds, address)},
	}
}

// trustSettings say whom and what the node trusts.
func (c *Config) trustSettings() []Setting {
	return []Setting{
		{"peer_tls.cert", "file", "",
			"this node's certificate for calls between regions; its URI says " +
				"quotad://REGION/NODE",
			one(&c.PeerTLS.Cert, filePath)},
		{"peer_tls.key", "file", "",
			"key of peer_tls.cert",
			one(&c.PeerTLS.Key, filePath)},
		{"peer_tls.ca", "file", "",
			"certificates of the authorities that other regions' nodes may be of",
			one(&c.PeerTLS.CA, filePath)},
		{"gossip_keys", "key", "",
			"base64 of 16, 24 or 32 bytes, or file:PATH of a file with one on a line; the " +
				"first encrypts, all decrypt",
			keys(&c.GossipKeys)},
		{"bootstrap", "bool", "",
			"this region never served before, so an empty Redis is no loss of data",
			one(&c.Bootstrap, boolean)},
		{"insecure", "bool", "",
			"let peer listen beyond loopback without peer_tls, and gossip without " +
				"gossip_keys: a private network only",
			one(&c.Insecure, boolean)},
	}
}

// runningSettings say how the node runs.
func (c *Config) runningSettings() []Setting {
	return []Setting{
		{"log_level", "level", "info",
			"debug, info, warn or error",
			one(&c.LogLevel, logLevel)},
		{"request_id_repeats", "number", "3",
			"how often an admitted request is answered from memory that is sent again by its " +
				"request_id; beyond that it is charged anew",
			one(&c.Repeats, number[int64]("repeats", 1, maxRepeats))},
		{"remember.buckets", "number", "2000000",
			"of how many buckets the node notes that it used them, 85 bytes of heap each; " +
				"that one beyond is deleted goes unnoticed, and after a loss it stays closed",
			one(&c.Memory.Buckets, number("buckets", minRemembered, maxRemembered))},
		{"remember.uses", "number", "500000",
			"of how many buckets of windows over a minute it keeps the use in memory, 280 " +
				"bytes of heap more each; that of others is in the journal alone",
			one(&c.Memory.Uses, number("buckets", minRemembered, maxRemembered))},
		{"drain_timeout", "duration", "10s",
			"how long requests under way are waited for at the end",
			one(&c.DrainTimeout, duration(0, maxDrain, "10s"))},
		{"chaos", "bool", "",
			"let whoever reaches the HTTP API or the peer port cut this node off from other " +
				"regions, to rehearse faults: not for production",
			one(&c.Chaos, switched)},
	}
}
