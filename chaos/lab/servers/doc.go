// Package servers starts Redis servers: one inside this process for demos and tests (embedded.go),
// one whose clock and losses a simulator controls (driven.go), and redis-server processes, alone
// (process.go) or as a Redis Cluster (cluster.go). All listen on loopback, and keep nothing when
// they end.
package servers
