// Package world runs a whole quotad in one process. Each region has a Redis of its own and a node
// with gossip and journal. The network between the regions has delays and cuts (chaos/lab/network).
// story.go plays the demo on it: load, a partition, a flood and a heal, judged from outside by
// chaos/judge/oracle.
package world
