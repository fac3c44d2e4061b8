// Package memory is the group of what outlives a request:
//
//	a document -> tenure (on what terms the store is used) -> rules (as one region applies it)
//	a call     -> store (the scripts, in Redis)
//	a row, a checkpoint -> journal (on disk, before anybody hears of it)
//	what was seen of use -> copies (at other nodes), tally (counted, for operators)
//
// It imports base. See docs/development/architecture.md for the way of a document and of a lost store.
package memory
