// Package prefetch holds units of buckets whose limit says consistency: prefetch, to admit requests
// from without asking the store.
//
// What a node holds of a bucket is a chunk, which the store was charged with beforehand:
//
//	Chunks.Spend       admits a request from chunks of all its buckets
//	  -> TopUp         wants another chunk of a bucket of which little is left, or none
//	  -> queue         asks the store for it, as for any request
//	  -> base/held     keeps it beside what the node remembers of the bucket
//
// What is left of a chunk goes back to the store when the chunk is over, when the region has fewer
// rights, when the document changes, and when the node ends.
package prefetch
