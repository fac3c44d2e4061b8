// Package policy reads the limits document: the one file in which an operator
// says which limits exist, for whom, and how they are split between regions.
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
// The algorithm is one of those in package algorithms. The buckets also have a
// burst, which is the limit unless the entry says otherwise.
//
// [Parse] is strict. Unknown fields, values of another type, numbers in any
// form but plain digits, anchors and aliases are refused, and a document with
// one error is refused whole: a half-read document is a limit nobody wrote.
// Every problem is an [*strictyaml.Error] with file, line, column, what is wrong and how
// to mend it, and all of them are reported together. What is valid but probably
// not meant is told by [Document.Warnings] and refuses nothing.
//
// A parsed [Document] is immutable, and so are the things made from it:
//
//   - its [Epoch] names it: the version the operator gave, and a digest of what
//     the document means, whatever its layout, comments and order of regions;
//   - a [Matcher] finds the limits of a request without allocating;
//   - a [BucketID] names one entry applied to one key. It is built from what
//     makes a bucket a bucket (domain, name, algorithm, window, key, conditions)
//     and from nothing else, so raising a limit or a burst keeps the counts of
//     its buckets while another window, key or condition starts new ones.
//
// Entries that share a name are one limit with several terms, say one for each
// plan, of which the most specific applies. Each counts for itself: rights that
// were lent under the limit of one plan mean nothing under that of another, so
// an account that changes its plan inside a window starts a new count.
//
// [Watch] keeps the document in force up to date with the file.
//
// The words used here (limit, key, bucket, region, weight, entitlement) are
// those of package allocator.
package policy
