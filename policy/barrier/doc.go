// Package barrier decides which limits documents bind a region while a new document takes effect,
// and from when on the new one counts alone.
//
// A region never drops what it promised under one document before every other region knows the
// next. So several documents can be open at a time: the base, and every newer one that the region
// has heard of ([Agenda]). A region may use the least of what the open documents give it of a
// limit. All regions together then stay within the limit of any document that is open in all of
// them.
//
// A region acknowledges a document when its store and its journal hold it: from then on no node of
// the region decides without it. The acknowledgement names the store's time. It goes to the other
// regions with every message between them, and names exactly one document, by its digest.
//
// # When a newer document counts alone
//
// For one limit ([View.Standing]) it does when
//
//   - every region to which it gives less than an older one has acknowledged it;
//   - a majority of the regions of the base has acknowledged it, and a majority of its own, so that
//     of two documents that do not know of each other at most one gets there;
//   - all that was promised before weighs no more. Let T be the latest time of those
//     acknowledgements. The cell of T must be over and weigh no more, and a bucket must have had the
//     time to fill once. The same holds for the next cell if rows of it may have been lent before T:
//     a fixed window's are lent from [algorithms.Advance] before it opens. If the Envoys of some
//     region may hold fewer tokens, they must have had the time to use or lose the others.
//
// A limit whose terms do not change is not open, whatever else a document changes. The terms are
// the numbers on which the split depends: limit, burst, no_assignment and max_burst of assign,
// regions, weights and reserve. The lending limit is one of them, because a store that lost its
// data knows by it how much of its part may be lent. Algorithm, window, key, name and conditions
// belong to the name of a bucket. If they change, one limit is removed and another added. Requests
// are charged to both until the old one weighs no more ([View.Leftovers]).
//
// # Why a majority
//
// A document that only raises limits takes nothing from anybody. It still needs a majority. Say
// that two regions have 500 of 1,000 each. One is given a version 3 that raises it to 1,000 of
// 1,500. The other is cut off, and is given another version 3 that raises that one to 1,000 of
// 1,500. Both would take effect, and the regions would admit 2,000 of 1,500. The same happens with
// versions 3 and 4 if neither region hears of the other's. Two majorities have a region in common.
// It takes only one version 3, and its acknowledgement of version 4 names version 3, so the other
// side learns of it.
//
// # Limits that are added
//
// Two documents that do not know of each other may add a limit that no document had before, with
// different parts. So a document without the limit counts as one that gives each of its regions an
// even part. The newer document counts alone when all these regions have acknowledged it. Until
// then each of n regions uses at most L/n of some limit L that is open there, so all of them
// together use no more than the largest. What they used before they acknowledged need not be over.
// It was nothing, unless a region took another such document first, which its acknowledgement
// tells.
//
// # Regions that are fenced
//
// Nobody waits for a region that is fenced ([policy.Document.Fences]), so it may miss a document
// that is in force elsewhere. Each document therefore counts how often each region has returned. If
// a region's documents know a lower count than the newest one, the region has nothing until the
// newest counts alone. For that it waits for all others, because any of them may have had more than
// it knows.
//
// # Many documents
//
// If more documents are open than [MaxOpen], the older ones are folded ([View.Folded]). Of each
// limit that they still bind, the least and the most is kept: until a time if that is known, or
// else until a newer document counts alone. So edits of other limits cost nothing, however many
// there are.
//
// The package is pure: no clock, no goroutine, no I/O.
package barrier
