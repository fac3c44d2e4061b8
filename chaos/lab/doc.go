// Package lab holds stand-ins that only simulations, demos and tests use: a Redis server in memory,
// whose scripts the Go twin answers (twin.go; way.go connects to it), an embedded Redis whose calls
// fail on demand (driven.go), and a disk in memory below a journal (disk.go). Package suite says
// which of the two kinds of servers the tests of nodes use.
//
// Its sub-packages: servers starts real and embedded Redis servers; network connects hosts in
// memory; journals opens journals on disks in memory; cluster puts together whole nodes that run by
// themselves, and node steps them by hand; documents writes limits documents for tests.
//
// Package lab imports the interfaces that it implements, and nothing that drives whole nodes.
// Packages cluster, node, journals and documents may do so.
package lab
