// Package process runs whole regions as real processes on loopback: a
// redis-server and some quotad nodes for each, with generated node files, each
// node on an IP address of its own in 127.0.0.0/8, so that remote addresses
// tell nodes apart (Linux answers on all of them; other systems need aliases).
//
// A [Fleet] is all of them. Its processes can be killed, stopped, continued and
// started again while a [Flow] offers load to them over HTTP or gRPC and hands
// every answer to the judge of chaos/oracle. A request is in one of three
// classes. It was never sent (nobody accepted the connection): it is counted,
// and no answer. It was answered with a decision: that is the answer. Anything
// else, a timeout, a broken connection, or an admission that no store gave a
// cell to, has an unknown outcome, which the judge counts as admitted.
//
// The package knows quotad as its callers do, by its command line and its API,
// and imports nothing of what it runs.
//
// All that is started ends with the [Scope] it was started in, a test for
// example, and on Linux also when the process that started it is killed.
package process
