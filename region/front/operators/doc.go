// Package operators serves the operators of one node over HTTP: what the node and the others know, and
// acts on it. A reset breaks a limit on purpose: what is admitted after it comes on top of what was
// admitted before.
//
// # Paths
//
// The admin listener, /livez and /readyz as well:
//
//	GET  /, /console/         a page for browsers. See package console
//	POST /v1/reset            {"limit", "domain", "descriptors"}: clears the use of a bucket in
//	                          this region
//	POST /v1/cut              {"region", "for"}: drops all traffic between the node and a region
//	                          for a while; 403 unless the node was started for rehearsals
//	                          of faults
//	POST /v1/rehearse         {"region", "load"} or {"region", "kill_store": "5s"}: sends a region so
//	                          many requests a second, or ends its store with its data for a
//	                          while; 403 except in quotad dev
//	GET  /v1/status           the node, and what it knows of the other regions
//	GET  /v1/overview         all nodes of all regions as each tells of itself, and the buckets with
//	                          the most units (?hottest=20); up to a second old
//	GET  /v1/watch            such an overview each second, as server-sent events
//	GET  /v1/explain/{limit}  how a bucket stands in every region, and why the last request on it
//	                          was decided as it was; parameters as of /v1/buckets/{limit}
//	GET  /v1/buckets          buckets that the node was asked about lately: ?domain=, limit= and
//	                          most= (100), and what values begin with, as account=4
//	GET  /v1/buckets/{limit}  the ledger of a bucket in this region; ?domain=api&account=42: every
//	                          parameter but domain is a descriptor, so a descriptor named
//	                          domain cannot be given
//	GET  /v1/document         the document in force, as text
//	GET  /v1/documents        which documents are open, and what each region uses of them
//	POST /v1/apply            the text of a document, as application/yaml
//	GET  /metrics             Prometheus
//	GET  /debug/pprof/        profiles of the process, of a minute at most
package operators
