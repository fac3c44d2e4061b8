// Package scenario rehearses faults: it reads a scenario, plays it on a
// deployment of quotad under load, records every request and answer, and judges
// the record.
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
//	  us: {weight: 40, nodes: 2}    # nodes: 1 to 20, 1 if left out
//	  eu: {weight: 60}
//	limits:                         # entries as in a limits document
//	  - {name: account, domain: api, key: [account], algorithm: fixed_window, limit: 200, window: 1s}
//	added: []                       # more entries, which the step apply-policy adds; may be left out
//	load:                           # what is asked for, again and again, of the nodes of a region in turn
//	  - {region: us, limit: account, key: "42", rate: 300, cost: 1, from: 0s, to: 20s}
//	steps:
//	  - {at: 5s, do: cut, between: [us]}
//	  - {at: 15s, do: heal}
//	expect:
//	  - {that: ceiling}
//
// In load the rate is in units a second over all nodes of the region, up to 20,000,
// and a million requests in all; cost, from and to may be left out. A limit with several names in its key takes a list:
// key: ["42", "eu"].
//
// # Steps
//
// A step has a time, at, and a word, do. Steps begin at their times, also when
// one before is still under way. These are the words, with the fields that they
// take; those in parentheses may be left out:
//
//	load          region limit rate (key)     asks for so many units a second from now on
//	cut           (between) (and) (one-way) (only)
//	                                          cuts regions off from others: drops packets, stalls streams
//	heal          (between) (and)             ends cuts, delays and losses
//	delay         by (between) (and) (one-way)
//	                                          makes the way take so much longer
//	lose          percent (between) (and) (one-way)
//	                                          loses so many of 100 packets of gossip
//	flap          every for (between) (and)   cuts and heals again and again, each for the time every
//	kill          region (node) (points) (times)
//	                                          kills nodes; with points, has one node kill itself at each of these points
//	                                          of a transfer, so many times each, and starts it again
//	start         region (node)               starts nodes that were killed
//	restart       (region) (node)             asks one node after the other to end and starts it again
//	pause         region (node)               stops nodes where they stand
//	continue      region (node)               lets them go on
//	kill-redis    region                      kills the Redis, which keeps nothing
//	start-redis   region                      starts it again, empty
//	flush-redis   region                      empties it
//	pause-redis   region                      stops it where it stands
//	continue-redis  region                    lets it go on
//	failover-redis  region (by)               promotes a copy that heard nothing for the time by, and ends the primary: the
//	                                          last step about this Redis
//	apply-policy  (weights)                   gives all nodes the next version of the document: with the entries of added,
//	                                          and with these weights
//	fail-disk     region (node)               has every write to the journals of nodes fail
//	mend-disk     region (node)               ends the nodes, mends their disks, and starts them
//	clock         region by                   moves the clock of a region's Redis forward, or back (-2s): then an embedded
//	                                          one, about which there is no other step
//
// between and and are lists of regions: what goes between the first and the
// second, in both directions; one-way: only what the first send to the second.
// Without and it is all others, without between as well it is all regions. only:
// udp or tcp leaves the other alone. A node is a number from 1; without it all
// nodes of the region are meant, for points the first.
//
// # Expectations
//
// An expectation has a word, that, and may name a limit, and a key of it, if
// there is load on several. A span is from..to; left out it is the whole run.
//
// To what an expectation is about there must have been requests, or it is not met.
//
//	ceiling     (despite) (above)      nothing is admitted above the limit, in no cell; or no more than what quotad limits
//	                                   bound prints for these mishaps, or above, in units
//	admitted    at-least (from) (to)   so many of 100 units that one limiter for all regions would have admitted; what got no
//	                                   answer is not admitted
//	split       region (from) (to) (at-least)
//	                                   in each window the region admits at most its fixed split, by the first version of
//	                                   the document; and at least so many of 100 units of it
//	degraded    (region) (from) (to)   every decision of the region says that another is out of touch; without region some
//	                                   decision does
//	in-touch    (region) (from) (to)   none does, and every region with load decides
//	borrows     region after within    the region admits something while it holds borrowed rights
//	answers     within (percent) (region) (from) (to)
//	                                   requests are decided within that time, all or so many of 100; one without an answer
//	                                   is not
//	ready       region after within (node)
//	                                   nodes say that they may be sent requests
//	alive                              no node ended but where a step ended it
//
// despite is a list of {cause, when, region}, as they are printed. A request
// without an answer may have been admitted: the ceiling says how much that would
// be, and is judged by what is certain. Where decisions were taken without a
// store, what the document prints for that is added by itself.
//
// That every step did what it is to do is always expected: what was to be killed
// ran and died of it, nodes that were asked to end did so with exit code 0, a
// document was taken up by every node that a step did not end or pause, and each
// cut, loss and delay met packets or streams between its regions.
package scenario
