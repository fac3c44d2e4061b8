// Package policy reads the limits document: the one file in which an operator says which limits
// exist, for whom, and how they are split between regions.
//
//	version: 1
//	regions:
//	  us-east: {weight: 40}
//	  eu-west: {weight: 60}
//	limits:
//	  - name: account-minute
//	    domain: api
//	    key: [account]
//	    match: {plan: free}
//	    algorithm: fixed_window
//	    limit: 1000
//	    window: 1m
//
// The algorithm is one of those in package algorithms. token_bucket and leaky_bucket also have a
// burst, which is the limit unless the entry says otherwise.
//
// Requests of Envoy have lists of descriptors. A limit may say which list it is for, entry by entry
// in their order, in place of key and match:
//
//	entries: [{key: database, value: users}, {key: user}]
//
// A list walks the entries of its domain as a tree (paths.go). exempt lists what no such limit
// applies to. on_no_limit says what becomes of requests to which no limit applies (domains.go).
//
// [Parse] is strict. It refuses unknown fields, values of another type, numbers in any form but
// plain digits, anchors and aliases. It refuses a document with one error as a whole, because a
// document read in half would be a limit that nobody wrote. Every problem is an [*strictyaml.Error]
// with file, line, column, what is wrong and how to mend it, and all problems are reported
// together. [Document.Warnings] tells of what is valid but probably not meant, and refuses nothing.
//
// A parsed [Document] is immutable, and so are the things made from it:
//
//   - Its [Epoch] names it: the version that the operator gave, and a digest of what the document
//     means, whatever its layout, comments and order of regions.
//   - A [Matcher] finds the limits of a request without allocating, and at a cost that depends on
//     the limits that apply, not on how many others there are.
//   - A [BucketID] names one entry applied to one key. It is built from the domain, name,
//     algorithm, window, key and conditions, and from nothing else. So a bucket keeps its counts
//     when its limit or burst is raised, while another window, key or condition starts a new one.
//
// Entries that share a name are one limit with several terms, for instance one for each plan. The
// most specific entry that matches applies. Each entry counts for itself: rights lent under the
// limit of one plan mean nothing under that of another, so an account that changes its plan inside
// a window starts a new count.
//
// [Watch] keeps the document in force up to date with the file.
//
// Package allocator defines the words used here (limit, key, bucket, region, weight, entitlement).
package policy
