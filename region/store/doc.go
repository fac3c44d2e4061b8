// Package store is a region's Redis: the one place where its buckets change, always by one of the scripts of package
// algorithms, so that any number of nodes may serve the region. url.go reads where it is, and connect.go reaches it: one
// server, the master that Sentinels name (sentinel.go), or the masters of a Cluster (cluster.go). A store is divided into
// shards (key.go), of which all but those on a Cluster have one; open.go begins generations of all shards together.
// run.go sends calls, each server's as one pipeline that ends with asking whose data that server holds (identity.go), and
// errors.go says what every error means. server.go and servercluster.go start Redis servers for those who have none.
//
// For simulators model.go is a Store without a Redis: how a node works with its store is the same (session.go), and what
// the scripts do a twin of them does (modelserver.go). driven.go is a Redis for them, whose clock stands still.
package store
