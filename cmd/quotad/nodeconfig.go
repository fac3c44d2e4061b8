package main

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/quotad/quotad/region/door"
	"github.com/quotad/quotad/region/peer"
	"github.com/quotad/quotad/region/rights"
)

// nodeConfig says what a node is to be.
type nodeConfig struct {
	region, node string
	nodes        int
	dataDir      string
	policy       string
	redisURL     string
	redisTimeout time.Duration
	embedded     bool
	listen       struct{ grpc, http, peer, gossip netip.AddrPort }
	limits       door.Limits                   // of each port of the gRPC API, the HTTP API and other regions
	advertise    struct{ peer, gossip string } // host:port; empty: where it listens
	seeds        []string
	gossipKeys   [][]byte
	peerTLS      peer.Files // empty: plain text
	redisTLS     struct{ ca, cert, key string }
	bootstrap    bool
	insecure     bool
	logLevel     slog.Level
	drain        time.Duration
	repeats      int64
	memory       rights.Memory
	chaos        bool

	places map[string]place // of every setting that was given, by path
}

// settings are all that can be set, in the order of the node file.
var settings = []setting{
	{path: "region", kind: "name", usage: "region of this node, as the limits document names it",
		read: one(func(c *nodeConfig, v value) error { return readName(&c.region, v) })},
	{path: "node", kind: "name", usage: "name of this node, unique in its region (default: the host name)",
		read: one(func(c *nodeConfig, v value) error { return readName(&c.node, v) })},
	{path: "nodes", kind: "number", usage: "how many nodes the region has", fallback: "1",
		read: one(readNodes)},
	{path: "data_dir", kind: "folder", usage: "folder of the journal, made if it is missing",
		read: one(func(c *nodeConfig, v value) error { return readPath(&c.dataDir, v) })},
	{path: "policy", kind: "file", usage: "limits document; relative to the node file if set there",
		read: one(func(c *nodeConfig, v value) error { return readPath(&c.policy, v) })},
	{path: "redis.url", kind: "url", usage: "the region's Redis: redis://[user:password@]host:port[/db], redis+sentinel://host:port,.../master or redis+cluster://host:port,...; rediss for TLS",
		read: one(readRedisURL)},
	{path: "redis.embedded", kind: "bool", usage: "run a Redis inside this process, which keeps nothing: not for production",
		read: one(func(c *nodeConfig, v value) error { return readBool(&c.embedded, v) })},
	{path: "redis.timeout", kind: "duration", usage: "how long a decision may take: then, or once the Redis fails, on_store_failure decides", fallback: "50ms",
		read: one(readRedisTimeout)},
	{path: "redis.tls.ca", kind: "file", usage: "certificates of the authorities that the Redis may be of (default: those of the system)",
		read: one(func(c *nodeConfig, v value) error { return readPath(&c.redisTLS.ca, v) })},
	{path: "redis.tls.cert", kind: "file", usage: "certificate to show to the Redis",
		read: one(func(c *nodeConfig, v value) error { return readPath(&c.redisTLS.cert, v) })},
	{path: "redis.tls.key", kind: "file", usage: "key of redis.tls.cert",
		read: one(func(c *nodeConfig, v value) error { return readPath(&c.redisTLS.key, v) })},
	{path: "listen.grpc", kind: "host:port", usage: "where the gRPC API listens", fallback: "127.0.0.1:8081",
		read: one(func(c *nodeConfig, v value) error { return readListen(&c.listen.grpc, v) })},
	{path: "listen.http", kind: "host:port", usage: "where the HTTP API listens", fallback: "127.0.0.1:8080",
		read: one(func(c *nodeConfig, v value) error { return readListen(&c.listen.http, v) })},
	{path: "listen.peer", kind: "host:port", usage: "where other regions' nodes are served", fallback: "127.0.0.1:8082",
		read: one(func(c *nodeConfig, v value) error { return readListen(&c.listen.peer, v) })},
	{path: "listen.gossip", kind: "host:port", usage: "where gossip listens, TCP and UDP", fallback: "127.0.0.1:7946",
		read: one(func(c *nodeConfig, v value) error { return readListen(&c.listen.gossip, v) })},
	{path: "listen.max_connections", kind: "number", usage: "how many connections each of grpc, http and peer may have open; more are closed at once", fallback: "2048",
		read: one(func(c *nodeConfig, v value) error { return readConnections(&c.limits.Connections, v) })},
	{path: "listen.max_connections_per_address", kind: "number", usage: "how many of them one IP address may have open; behind a proxy all callers have its address: give listen.max_connections there", fallback: "1024",
		read: one(func(c *nodeConfig, v value) error { return readConnections(&c.limits.PerAddress, v) })},
	{path: "advertise.peer", kind: "host:port", usage: "where other regions reach listen.peer (default: the same)",
		read: one(func(c *nodeConfig, v value) error { return readAddress(&c.advertise.peer, v) })},
	{path: "advertise.gossip", kind: "host:port", usage: "where other nodes reach listen.gossip (default: the same)",
		read: one(func(c *nodeConfig, v value) error { return readAddress(&c.advertise.gossip, v) })},
	{path: "seeds", kind: "host:port", usage: "gossip addresses of some other nodes; repeat it or separate them with commas", list: true,
		read: readSeeds},
	{path: "peer_tls.cert", kind: "file", usage: "this node's certificate for calls between regions; its URI says quotad://REGION/NODE",
		read: one(func(c *nodeConfig, v value) error { return readPath(&c.peerTLS.Cert, v) })},
	{path: "peer_tls.key", kind: "file", usage: "key of peer_tls.cert",
		read: one(func(c *nodeConfig, v value) error { return readPath(&c.peerTLS.Key, v) })},
	{path: "peer_tls.ca", kind: "file", usage: "certificates of the authorities that other regions' nodes may be of",
		read: one(func(c *nodeConfig, v value) error { return readPath(&c.peerTLS.CA, v) })},
	{path: "gossip_keys", kind: "key", usage: "base64 of 16, 24 or 32 bytes, or file:PATH of a file with one on a line; the first encrypts, all decrypt", list: true,
		read: readGossipKeys},
	{path: "bootstrap", kind: "bool", usage: "this region never served before, so an empty Redis is no loss of data",
		read: one(func(c *nodeConfig, v value) error { return readBool(&c.bootstrap, v) })},
	{path: "insecure", kind: "bool", usage: "let peer listen beyond loopback without peer_tls, and gossip without gossip_keys: a private network only",
		read: one(func(c *nodeConfig, v value) error { return readBool(&c.insecure, v) })},
	{path: "log_level", kind: "level", usage: "debug, info, warn or error", fallback: "info",
		read: one(readLogLevel)},
	{path: "request_id_repeats", kind: "number", usage: "how often an admitted request is answered from memory that is sent again by its request_id; beyond that it is charged anew", fallback: "3",
		read: one(readRepeats)},
	{path: "remember.buckets", kind: "number", usage: "of how many buckets the node notes that it used them, 85 bytes of heap each; that one beyond is deleted goes unnoticed, and after a loss it stays closed", fallback: "2000000",
		read: one(func(c *nodeConfig, v value) error { return readRemembered(&c.memory.Buckets, v) })},
	{path: "remember.uses", kind: "number", usage: "of how many buckets of windows over a minute it keeps the use in memory, 280 bytes of heap more each; that of others is in the journal alone", fallback: "500000",
		read: one(func(c *nodeConfig, v value) error { return readRemembered(&c.memory.Uses, v) })},
	{path: "drain_timeout", kind: "duration", usage: "how long requests under way are waited for at the end", fallback: "10s",
		read: one(readDrain)},
	{path: "chaos", kind: "bool", usage: "let whoever reaches the HTTP API or the peer port cut this node off from other regions, to rehearse faults: not for production",
		read: one(func(c *nodeConfig, v value) error { return readChaos(&c.chaos, v) })},
}
