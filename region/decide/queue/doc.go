// Package queue asks the store to decide requests, many with one round trip.
//
// A request passes these files:
//
//	Queue.Decide (decide.go)
//	  -> ask      asks the store once, until the request's time is over (decide.go); on a Redis
//	              Cluster it asks shard by shard (spanning.go)
//	  -> lanes    have a batcher for each server of the store (lanes.go)
//	  -> batcher  sends the requests that come while round trips are under way together, with
//	              the next round trip (batcher.go, group.go)
//	  -> Answer   goes to whoever waits, to the buckets' memory (learn.go) and to Rights
//
// Requests that have to wait queue in fair order (fair.go). The pace of the store is measured
// (pace.go). A request that cannot be decided before its time is over at that pace gets an Overload
// (admission.go).
//
// A server that does not answer is asked nothing until a probe finds that it answers again
// (breaker.go). A process that lacks processor time does not take its store for such a one
// (wakes.go).
//
// Clock and goroutines are values (executor.go): those of the process, or a simulator's, in which one
// thing happens after another.
//
// The queue neither finds the limits of a request nor makes a decision of an answer: admit does.
package queue
