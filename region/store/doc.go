// Package store is a region's store: the one place where its buckets change, always by one of the scripts of package
// algorithms, so that any number of nodes may serve the region.
//
// A Store (store.go) completes a node's calls with what it knows: the generation it opened the store under (open.go,
// session.go), whose data that was (identity.go), and the latest time it was shown. Below it are Servers (servers.go),
// which run calls and know nothing of generations. In production those are Redis servers (redis.go, redislook.go):
// connect.go reaches one server, the master that Sentinels name (sentinel.go), or the masters of a Cluster (cluster.go);
// url.go reads where they are, and errors.go says what every error means. In simulations and tests the Servers are those
// of chaos/lab.
//
// A store is divided into shards (key.go), of which all but those on a Cluster have one.
package store
