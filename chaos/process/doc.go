// Package process runs whole regions as real processes on loopback: a
// redis-server and some quotad nodes for each, with generated node files, each
// node on an IP address of its own in 127.0.0.0/8, so that remote addresses
// tell nodes apart (Linux answers on all of them; other systems need aliases).
//
// A [Fleet] is all of them. Its processes can be killed, stopped, continued and
// started again while a [Flow] offers load to them over HTTP or gRPC and hands
// every answer to the judge of chaos/oracle; chaos/caller says which answers
// there are.
//
// With [Config.Lines] all that goes between nodes goes over [Lines]: each node
// advertises a relay that stands for it, and what comes by there can be lost,
// held up and slowed down, for each ordered pair of regions and each protocol.
// A [Proxy] does the same, more simply, between a node and its Redis.
//
// The package knows quotad as its callers do, by its command line and its API,
// and imports nothing of what it runs.
//
// All that is started ends with the [Scope] it was started in, a test for
// example, and on Linux also when the process that started it is killed; then
// folders stay, and disks that can fail stay mounted (umount them).
package process
