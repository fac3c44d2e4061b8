// Package envoyimport makes limits documents from the configuration files of envoyproxy/ratelimit.
//
// [Read] reads the files of a folder, and [Convert] makes one document from them:
//
//	domain: mongo_cps                      domains:
//	descriptors:                             - {name: mongo_cps, descriptors: apart}
//	  - key: database                      limits:
//	    value: users                         - name: database_users
//	    rate_limit:                            domain: mongo_cps
//	      unit: second                         entries: [{key: database, value: users}]
//	      requests_per_unit: 500               algorithm: fixed_window
//	                                           limit: 500
//	                                           window: 1s
//
// A descriptor with a rate_limit becomes a limit, whose entries are the descriptors on the way to
// it. A descriptor that is unlimited, or has neither a rate_limit nor descriptors, becomes an
// exemption. Whatever has no equal in a limits document is an [*strictyaml.Error] with its place,
// and all of them are reported at once. What changes no decision, such as detailed_metric, is left
// out with a warning.
//
// Files are read as envoyproxy/ratelimit reads them, by gopkg.in/yaml.v2: with anchors, aliases and
// merge keys, with yes and 0x10, and only up to the end of the first document. A name that it knows
// nowhere is an error, and a field that stands where it has no effect gets a warning, as there it
// is passed over without one.
//
// A limit is named after its path, as the statistics of envoyproxy/ratelimit name it
// (database_users). The name changes only with the path, because a limit with another name starts
// to count anew. See names.go for paths that are no valid names.
package envoyimport
