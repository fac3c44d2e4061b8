// Package store runs scripts in a region's store, which is a Redis. The store is the one place
// where the region's buckets change, and only scripts of package algorithms change them. So any
// number of nodes may serve the region.
//
// A [Store] (store.go) adds to each call the generation under which its node opened the store
// (open.go, session.go), and the latest time that the store has shown the node. It ignores answers
// of a server that has other data than the node opened (identity.go).
//
// Below the Store are [Servers] (servers.go). They run calls, and know nothing of generations. In
// production they are Redis servers (redis.go, redislook.go): one server (connect.go), the master
// that Sentinels name (sentinel.go), or the masters of a Cluster (cluster.go). url.go reads their
// addresses. errors.go says what each error of a server means, and refused.go turns what a script
// refuses into an error. In simulations and tests package chaos/lab provides the Servers.
//
// A store is divided into shards (key.go). A store on a Redis Cluster has many, any other store has
// one. Each shard has a token, which names the generation: a fencing token.
package store
