// Package barrier says which limits documents bind a region while a document takes effect, and
// from when on a newer one alone does.
//
// A region never drops what it promised under one document before every other region knows the
// next. So several documents can be open at a time: the base, and every newer one that the region
// has heard of ([Agenda]). Of each limit a region may use the least of what the open documents give
// it. All regions together then stay within the limit of any document that is open in all of them.
//
// A region acknowledges a document when its store and its journal hold it: from then on no node of
// the region decides without it. The acknowledgement names the store's time. It goes to the other
// regions with every message between them, and names exactly one document, by its digest.
//
// A newer document counts alone, for one limit, when ([View.Standing])
//   - every region to which it gives less than an older one has acknowledged it;
//   - a majority of the regions of the base has acknowledged it, and a majority of its own, so that
//     of two documents that do not know of each other at most one gets there;
//   - all that was promised before weighs no more: with T the latest time of those
//     acknowledgements, the cell of T is over and weighs no more, and a bucket had the time to fill
//     once. So is the next cell, if rows of it may have been lent before T: those of a fixed window
//     are lent from [algorithms.Advance] before it on. Where the Envoys of some region may hold fewer
//     tokens, they have had the time to use or lose the others.
//
// A limit whose terms do not change is not open, whatever else a document changes. The terms are
// the numbers on which the split depends, limit, burst, no_assignment and max_burst of assign,
// regions, weights, reserve, and the lending
// limit, by which a store that lost its data knows how much of its part may be lent. Algorithm,
// window, key, name and conditions belong to the name of a bucket: where they change, one limit is
// removed and another added. Both are charged until the old one weighs no more ([View.Leftover]).
//
// Why a majority, where a document that only raises limits takes nothing from anybody: of two
// regions with 500 of 1,000 each, one is given version 3, which raises it to 1,000 of 1,500, and
// the other, cut off, another version 3, which raises that one to 1,000 of 1,500. Both would take
// effect, and the regions would admit 2,000 of 1,500. The same happens with versions 3 and 4 if
// neither region hears of the other's. Two majorities have a region in common. It takes one version
// 3 only, and its acknowledgement of version 4 names version 3, so the other side learns of it.
//
// A limit that no document had before may be added by two documents that do not know of each other,
// with different parts. So a document that lacks it counts as one that gives each of its regions an
// even part of it, and the newer one counts alone when all of those have acknowledged it. Until then
// each of n regions uses at most L/n of some limit L that is open there, and all of them together no
// more than the largest. What they used before they acknowledged need not be over: it was nothing,
// unless a region took another such document first, which its acknowledgement tells.
//
// A region that is fenced ([policy.Document.Fences]) is waited for by nobody, so it may miss a
// document that is in force elsewhere. Each document therefore counts how often each region has
// returned. A region whose documents know a lower count than the newest has nothing until that counts
// alone, and for that it waits for all others: any of them may have had more than it knows.
//
// Where more documents are open than [MaxOpen], the older ones are folded ([View.Folded]). Of each
// limit that they still bind the least and the most is kept, until a time if that is known, else until
// a newer document counts alone. So edits of other limits cost nothing, however many there are.
//
// The package is pure: no clock, no goroutine, no I/O.
package barrier
