// Package process runs whole regions as real processes on loopback: each region has a redis-server
// and some quotad nodes with generated node files. Each node has its own IP address in 127.0.0.0/8,
// so that nodes can be told apart by remote address. (Linux answers on all of these addresses;
// other systems need aliases.)
//
// A [Fleet] is all of these processes. They can be killed, stopped, continued and restarted while
// [Node.Ask] asks them over HTTP or gRPC, and returns answers for the judge of chaos/judge/oracle.
// Package chaos/play/caller documents the classes of answers.
//
// With [Config.Lines], all traffic between nodes goes over [Lines]: each node advertises the
// address of a relay in its place. The lines can lose, stall and delay traffic, for each ordered
// pair of regions and each protocol. A [Proxy] does the same, in a simpler way, between a node and
// its Redis.
//
// The package knows quotad as its callers do, by its command line and its API, and imports nothing
// of what it runs.
//
// All processes end with the [Scope] they were started in, for example a test. On Linux they also
// end when the process that started them is killed. Then folders remain, and disks that can fail
// remain mounted (use umount).
package process
