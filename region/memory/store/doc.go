// Package store is a region's store: the one place where its buckets change, always by one of the
// scripts of package algorithms, so that any number of nodes may serve the region.
//
// A Store (store.go) adds to each of a node's calls the generation under which the node opened the
// store (open.go, session.go) and the latest time that the store has shown it. It ignores answers
// from a server whose data are not those that the store was opened on (identity.go).
//
// Below the Store are Servers (servers.go), which run calls and know nothing of generations. In
// production they are Redis servers (redis.go, redislook.go). connect.go reaches one server, the
// master that Sentinels name (sentinel.go), or the masters of a Cluster (cluster.go). url.go reads
// their addresses. errors.go says what every error of a server means, and refused.go makes errors
// of what scripts refuse. In simulations and tests package chaos/lab provides the Servers.
//
// A store is divided into shards (key.go). A store on a Redis Cluster has many, any other store has
// one.
package store
