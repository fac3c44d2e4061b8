// Package store is a region's Redis: the one place where its buckets change, always by one of the scripts of package
// algorithms, so that any number of nodes may serve the region. store.go runs scripts, open.go begins generations of
// the store, key.go names keys, server.go starts an embedded Redis or a redis-server process for those who have none.
package store
