// Package scenario rehearses faults. It reads a scenario, plays it on a deployment of quotad under
// load, records every request and answer, and judges the record.
//
// # The file
//
// A scenario is a YAML file. All its fields are here:
//
//	name: full-split                # letters, digits and dashes
//	about: One or two sentences.
//	rows: [1, 8]                    # of the fault matrix of the project; may be left out
//	duration: 20s                   # of the load, from when all regions are in touch
//	regions:
//	  us: {weight: 40, nodes: 2}    # nodes: 1 to 20, 1 if left out; envoys: 1 to 20, or none
//	  eu: {weight: 60}
//	limits:                         # entries as in a limits document
//	  - {name: account, domain: api, key: [account], algorithm: fixed_window, limit: 200,
//	     window: 1s}
//	added: []                       # more entries, for the step apply-policy; may be left out
//	load:                           # requests to the nodes of a region in turn, again and again
//	  - {region: us, limit: account, key: "42", rate: 300, cost: 1, from: 0s, to: 20s}
//	steps:
//	  - {at: 5s, do: cut, between: [us]}
//	  - {at: 15s, do: heal}
//	expect:
//	  - {that: ceiling}
//
// In load, rate is in units a second over all nodes of the region, up to 20,000. All loads together
// may have at most a million requests. cost, from and to may be left out. A limit with several
// names in its key takes a list: key: ["42", "eu"].
//
// A region with envoys has so many Envoys in front of its nodes. The nodes assign them parts of the
// limits that have assign (RLQS), and the Envoys decide by themselves. envoys: [1, 2] in load has
// these decide its requests in turn, in place of the nodes. They behave as Envoy's source does.
//
// # Steps
//
// A step has a time (at) and a word (do). Steps begin at their times, even while an earlier one is
// still under way. The words with their fields are as follows. Fields in parentheses may be left
// out.
//
//	load region limit rate (key)
//	            changes a load to this rate, in units a second
//	cut (between) (and) (one-way) (only)
//	            cuts regions off from others: drops packets, stalls streams
//	heal (between) (and)
//	            ends cuts, delays and losses
//	delay by (between) (and) (one-way)
//	            makes packets and streams take longer by so much
//	lose percent (between) (and) (one-way)
//	            loses so many of 100 packets of gossip
//	flap every for (between) (and)
//	            alternately cuts and heals, each for the time every
//	kill region (node) (points) (times)
//	            kills nodes; with points, has one node kill itself at each of these points of
//	            a transfer, so many times each, and starts it again
//	start region (node)
//	            starts nodes that were killed
//	restart (region) (node)
//	            asks one node after the other to end, and starts it again
//	pause region (node)
//	            stops nodes with SIGSTOP
//	continue region (node)
//	            lets paused nodes continue
//	kill-redis region
//	            kills the Redis, which keeps nothing
//	start-redis region
//	            starts it again, empty
//	flush-redis region
//	            deletes all its data
//	pause-redis region
//	            stops it with SIGSTOP
//	continue-redis region
//	            lets it continue
//	failover-redis region (by)
//	            promotes a replica that has received nothing for the time by, and ends the
//	            primary; no later step can concern this Redis
//	apply-policy (weights)
//	            gives all nodes the next version of the document, with the entries of added
//	            and with these weights
//	fail-disk region (node)
//	            has every write to the journals of nodes fail
//	mend-disk region (node)
//	            ends the nodes, repairs their disks, and starts them
//	cut-envoys region (envoy)
//	            breaks the streams of Envoys; they open others when they report next
//	clock region by
//	            moves the clock of a region's Redis forward, or back (-2s); the Redis is then an
//	            embedded one, which no other step can concern
//
// between and and are lists of regions. A step concerns the traffic between regions of the first
// list and regions of the second, in both directions. With one-way it concerns only what the first
// send to the second. Without and, the second list is all other regions. Without either, the step
// concerns all regions. With only: udp or only: tcp, the other protocol is not concerned. A node is
// a number from 1. Without it, a step concerns all nodes of the region, or, with points, the first
// node.
//
// # Expectations
//
// An expectation has a word (that). Those about what was admitted (ceiling, admitted, split and
// borrows) may name a limit and a key of it. All of these but ceiling must do so if there is load
// on several. The span of an expectation is from..to, or the whole run if both are left out.
//
// An expectation is not met if no requests were sent to what it concerns.
//
//	ceiling (despite) (above)
//	            no cell admits more than the limit; despite adds to the limit what quotad limits
//	            bound prints for these mishaps, above adds so many units; only one may be given
//	admitted at-least (from) (to)
//	            so many of 100 units are admitted that one limiter for all regions would have
//	            admitted; requests without an answer count as not admitted
//	split region (from) (to) (at-least)
//	            in each window the region admits at most its fixed split, by the first version
//	            of the document, and on average at least so many of 100 units of it
//	degraded (region) (from) (to)
//	            every decision of the region says that another region is out of touch; without
//	            region, some decision says so
//	in-touch (region) (from) (to)
//	            no decision says so, and every region with load decides
//	borrows region after within
//	            the region admits something while it holds borrowed rights
//	answers within (percent) (region) (from) (to)
//	            all requests, or so many of 100, are decided within that time; requests without
//	            an answer are not
//	ready region after within (node)
//	            nodes report that they are ready for requests
//	alive
//	            no node ended except by a step
//
// What Envoys decide counts in ceiling, admitted and split alone.
//
// despite is a list of {cause, when, region}, as they are printed. A request without an answer may
// have been admitted. The ceiling reports how much that would be, but is judged by what is certain.
// If decisions were taken without a store, the bound that is printed for that is added
// automatically.
//
// It is always expected that every step had its effect. Nodes to be killed were running and died of
// it. Nodes that were asked to end ended with exit code 0. Every node that no step had ended or
// paused adopted a new document. Every Envoy was assigned something. Each cut, loss and delay met
// packets or streams between its regions.
package scenario
