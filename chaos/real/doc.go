// Package real is the group of what runs against real processes:
//
//	a scenario's file (scenarios) -> scenario -> process (nodes, Redis, cuts) or staging (what runs already)
//	its load -> load -> the nodes
//	its record -> judge/oracle -> report
//	what a decision costs -> bench -> process
package real
