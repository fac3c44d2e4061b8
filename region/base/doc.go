// Package base is the group of what a node stands on, and what others may stand on, too:
//
//	a connection -> door (bounds what a caller may hold) -> front
//	a socket     -> link (cuts it, for a rehearsal)      -> memory, trade
//	a bucket     -> held (its denial and units in memory) -> decide, and the Go client
//	a mistake    -> invalid (which field of a request is wrong) -> decide, front
//	a loop       -> repeat (at each tick, or when somebody signals)
//	an answer    -> ratelimit (its HTTP fields about limits) -> front, and the Go middleware
//
// Nothing here knows a limits document. No package here imports another group.
package base
