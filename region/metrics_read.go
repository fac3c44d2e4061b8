package region

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/memory/tenure"
)

// reading is a metric that is read from the node at each scrape.
type reading struct {
	kind   prometheus.ValueType
	name   string
	help   string
	labels []string
	// read calls is once for each series.
	read func(n *Node, s Status, is emit)
}

// emit reports the value of the series with these labels.
type emit func(value float64, labels ...string)

const (
	gauge = prometheus.GaugeValue
	total = prometheus.CounterValue
)

// readings are all readings, grouped by subject.
var readings = [][]reading{storeReadings, peerReadings, exchangeReadings, journalReadings,
	gossipReadings, outsideReadings}

var storeReadings = []reading{
	{gauge, "quotad_policy_version", "Version of the newest limits document that is open.", nil,
		func(_ *Node, s Status, is emit) { is(float64(s.Version)) }},
	{gauge, "quotad_policy_documents",
		"Limits documents that are open; more than 1: a document has not taken effect whole yet.", nil,
		func(n *Node, _ Status, is emit) {
			is(float64(len(n.tenure.Rules().View.Agenda.Documents())))
		}},
	{gauge, "quotad_policy_open_seconds",
		"For how long limits have waited for a region to acknowledge a limits document; 0: none does.",
		[]string{"waiting_for"}, func(n *Node, _ Status, is emit) {
			waiting := n.tenure.Waiting()
			for _, r := range append([]string{n.config.Region}, n.tenure.Rules().Peers...) {
				is(waiting[r].Seconds(), r)
			}
		}},
	{gauge, "quotad_store_generation", "Generation of the region's store.", nil,
		func(_ *Node, s Status, is emit) { is(float64(s.Generation)) }},
	{total, "quotad_store_losses_total", "Losses of the store's data that this node found.", nil,
		func(_ *Node, s Status, is emit) { is(float64(s.Store.Losses)) }},
	{gauge, "quotad_store_rivals",
		"Nodes of this region that have another store than this node: deciding with it, stopped " +
			"in favour of an older one, or as gossip alone says. Any is a mistake: one region has " +
			"one store.", []string{"what"}, readRivals},
	{gauge, "quotad_store_mates",
		"Other nodes of this region by the store that gossip says they have: the same as this node's, another one, or none yet.",
		[]string{"store"}, readMates},
	{gauge, "quotad_store_stopped",
		"1 while this node does not use its store, because the region has an older one.", nil,
		func(_ *Node, s Status, is emit) { is(one(s.Store.Stopped != nil)) }},
	{total, "quotad_store_stops_total",
		"How often this node stopped using its store, because the region has an older one.", nil,
		func(_ *Node, s Status, is emit) { is(float64(s.Store.Stops)) }},
	{gauge, "quotad_store_out_of_reach",
		"1 while requests of the shard are decided without the store, because its server does not answer.", []string{"shard"},
		func(n *Node, _ Status, is emit) {
			for shard, out := range n.limiter.Queue().OutOfReach() {
				is(one(out), shardName(shard))
			}
		}},
	{total, "quotad_store_refusals_total",
		"Calls that the store's servers answered with an error, by kind: the error's first word.",
		[]string{"kind"},
		func(n *Node, _ Status, is emit) {
			all := n.tenure.Refused()
			for _, kind := range store.Kinds() {
				is(float64(all[kind]), kind)
			}
		}},
	{gauge, "quotad_store_refusing",
		"1 if a call was refused with an error of the kind in the last 10 s.", []string{"kind"},
		func(_ *Node, s Status, is emit) {
			for _, kind := range store.Kinds() {
				is(one(slices.ContainsFunc(s.Store.Refusing,
					func(r tenure.Refusal) bool { return r.Kind == kind })), kind)
			}
		}},
	{gauge, "quotad_store_may_evict",
		"1 if the store's maxmemory-policy is not noeviction, so that it may forget buckets; absent while it is not known.", nil,
		func(_ *Node, s Status, is emit) {
			if s.Store.Eviction != "" {
				is(one(s.Store.Eviction != store.NoEviction))
			}
		}},
	{gauge, "quotad_store_keys",
		"Keys in the region's Redis, as read once a minute; absent while it is not known.", nil,
		func(n *Node, _ Status, is emit) {
			if size := n.memory.size.Load(); size != nil && size.Reported {
				is(float64(size.Keys))
			}
		}},
	{gauge, "quotad_store_bytes",
		"Memory that the region's Redis uses, as read once a minute; absent while it is not known.",
		nil,
		func(n *Node, _ Status, is emit) {
			if size := n.memory.size.Load(); size != nil && size.Reported {
				is(float64(size.Bytes))
			}
		}},
	{gauge, "quotad_store_clock_apart_seconds",
		"How far the store's time is ahead of this node's clock, to some 10 ms; absent before the store told a time. The time never goes back: after a clock was ahead, windows stand still until this is 0.", nil,
		func(_ *Node, s Status, is emit) {
			if s.Store.ClockKnown {
				is(s.Store.ClockApart.Seconds())
			}
		}},
	{gauge, "quotad_recovery_buckets",
		"Buckets that the store lost and that are not whole yet: waiting to be restored, or restored but for a region that did not tell.", []string{"state"},
		func(_ *Node, s Status, is emit) {
			is(float64(s.Exchange.Recovering-s.Exchange.PartlyKnown), "waiting")
			is(float64(s.Exchange.PartlyKnown), "partly_known")
		}},
	{gauge, "quotad_closed_seconds",
		"After a loss of the store's data: for how long keys of the limit, of those that were asked for, are still answered recovering; absent: none is.",
		[]string{"limit"},
		func(n *Node, s Status, is emit) {
			for _, c := range s.Closed {
				is(c.Until.Sub(n.config.Now()).Seconds(), c.Limit)
			}
		}},
	{gauge, "quotad_recovering_seconds",
		"For how long keys of the limit, of those that were asked for, have waited for what other nodes and regions know of a loss; absent: none does.",
		[]string{"limit"},
		func(n *Node, s Status, is emit) {
			for _, r := range s.Recovering {
				is(max(n.config.Now().Sub(r.Since).Seconds(), 0), r.Limit)
			}
		}},
	{total, "quotad_recovered_buckets_total", "Buckets restored after a loss.", nil,
		func(_ *Node, s Status, is emit) { is(float64(s.Exchange.Recovered)) }},
	{gauge, "quotad_seen_buckets",
		"Buckets that the node remembers to have used (buckets), of long windows also how much (uses), and of these those whose use is not in the journal yet (unwritten).", []string{"what"},
		func(n *Node, _ Status, is emit) {
			seen := n.rights.Numbers().Seen
			is(float64(seen.Buckets), "buckets")
			is(float64(seen.Uses), "uses")
			is(float64(seen.Unwritten), "unwritten")
		}},
	{total, "quotad_seen_untracked_total",
		"Calls on buckets that there was no room to remember: that one is deleted is not noticed, and after a loss it stays closed. Raise remember.", nil,
		func(n *Node, _ Status, is emit) { is(float64(n.rights.Numbers().Seen.Untracked)) }},
	{gauge, "quotad_local_unbooked_units",
		"Units admitted without the store that it is not charged with yet.", nil,
		func(_ *Node, s Status, is emit) { is(float64(s.Local.Unbooked)) }},
	{gauge, "quotad_fallback_buckets",
		"Buckets and windows of which units were admitted without the store and count still.", nil,
		func(_ *Node, s Status, is emit) { is(float64(s.Local.Buckets)) }},
	{gauge, "quotad_fallback_bytes", "Memory that these buckets take, roughly, in bytes.", nil,
		func(_ *Node, s Status, is emit) { is(float64(s.Local.Bytes)) }},
	{total, "quotad_fallback_refused_total",
		"Requests denied without the store because there was no memory for their bucket.", nil,
		func(_ *Node, s Status, is emit) { is(float64(s.Local.Refused)) }},
	{total, "quotad_local_expired_units_total",
		"Units admitted without the store that counted no more before it could be charged with them.", nil,
		func(_ *Node, s Status, is emit) { is(float64(s.Local.Expired)) }},
	{gauge, "quotad_queue_length",
		"What waits: requests for the store, events for the exchange of rights.", []string{"queue"},
		func(n *Node, _ Status, is emit) {
			is(float64(n.limiter.Queue().Load().Queued), "requests")
			waiting := 0
			for _, events := range n.rights.Numbers().Waiting {
				waiting += events
			}
			is(float64(waiting), "events")
		}},
	{total, "quotad_queue_refused_total",
		"Requests that were not decided (queue_full), by why: no place in the queue (full), or too little time left before their callers give up, to ask the store (expired) or for its answer (waited); and script calls that a store which answered others answered too late (late).", []string{"why"},
		func(n *Node, _ Status, is emit) {
			r := n.limiter.Queue().Load().Refused
			is(float64(r.Full), "full")
			is(float64(r.Expired), "expired")
			is(float64(r.Waited), "waited")
			is(float64(r.Late), "late")
		}},
	{gauge, "quotad_script_seconds",
		"Time that the store takes for one script call on one bucket, as measured from round trips, fading; on a Cluster, of its slowest master.", nil,
		func(n *Node, _ Status, is emit) { is(n.limiter.Queue().Load().Script.Seconds()) }},
	{gauge, "quotad_pipeline_scripts",
		"The most script calls on one bucket that a round trip carries at that pace.", nil,
		func(n *Node, _ Status, is emit) { is(float64(n.limiter.Queue().Load().Pipeline)) }},
}

var journalReadings = []reading{
	{gauge, "quotad_journal_failed",
		"1 if the journal failed: nothing is lent until the node starts anew.", nil,
		func(_ *Node, s Status, is emit) { is(one(s.Exchange.JournalFailed || s.Journal.Failed)) }},
	{gauge, "quotad_copies",
		"Other nodes that have a copy, at most two seconds old, of what this node has seen of use: two of the region, or all where there are fewer, or one each of two other regions where there are none.", nil,
		func(n *Node, _ Status, is emit) { is(float64(n.rights.Numbers().Copies)) }},
	{total, "quotad_copies_begun_anew_total",
		"How often another node was told all use anew, because too much waited to be told.", nil,
		func(n *Node, _ Status, is emit) { is(float64(n.rights.Numbers().CopiedAnew)) }},
	{total, "quotad_store_keys_read_total",
		"Keys of the store that this node read because its journal is not whole.", nil,
		func(n *Node, _ Status, is emit) { is(float64(n.rights.Numbers().Read)) }},
	{gauge, "quotad_journal_rows", "Rows of the ledger in the journal.", nil,
		func(n *Node, _ Status, is emit) { is(float64(n.config.Journal.Stats().Rows)) }},
	{gauge, "quotad_journal_checkpoints", "Checkpoints of use in the journal.", nil,
		func(n *Node, _ Status, is emit) { is(float64(n.config.Journal.Stats().Checkpoints)) }},
	{gauge, "quotad_journal_waiting", "Calls that wait for the journal's next commit.", nil,
		func(n *Node, _ Status, is emit) { is(float64(n.config.Journal.Stats().Waiting)) }},
	{gauge, "quotad_journal_slowest_commit_seconds",
		"Time of the slowest commit since the node's start.", nil,
		func(n *Node, _ Status, is emit) { is(n.config.Journal.Stats().SlowestCommit.Seconds()) }},
	{total, "quotad_journal_calls_total",
		"Calls that commits carried; by quotad_journal_commit_seconds_count it is how many share an fsync.", nil,
		func(n *Node, _ Status, is emit) { is(float64(n.config.Journal.Stats().Calls)) }},
}

func readMates(n *Node, s Status, is emit) {
	var same, other, none float64
	for _, mate := range n.hearsay() {
		switch mate.Origin.ID {
		case s.Store.ID:
			same++
		case "":
			none++
		default:
			other++
		}
	}
	is(same, "same")
	is(other, "other")
	is(none, "none")
}

func readRivals(_ *Node, s Status, is emit) {
	var deciding, stopped, hearsay float64
	for _, r := range s.Store.Rivals {
		switch {
		case r.Hearsay:
			hearsay++
		case r.Stopped:
			stopped++
		default:
			deciding++
		}
	}
	is(deciding, "deciding")
	is(stopped, "stopped")
	is(hearsay, "hearsay")
}

var gossipReadings = []reading{
	{gauge, "quotad_region_nodes",
		"Nodes of this region by configuration (configured), and as gossip sees them (seen): they " +
			"should be as many.", []string{"what"},
		func(n *Node, s Status, is emit) {
			is(float64(s.Store.Nodes), "configured")
			is(float64(n.mates.count()), "seen")
		}},
	{gauge, "quotad_gossip_members",
		"Nodes of the region that gossip sees alive, this one included.", []string{"region"},
		func(n *Node, s Status, is emit) {
			seen := map[string]int{}
			for _, m := range s.Members {
				region, _, _ := strings.Cut(m, "/")
				seen[region]++
			}
			// Only regions of the document get a series: a member may call its region anything.
			for _, r := range n.tenure.Rules().Document.Regions {
				is(float64(seen[r.Name]), r.Name)
			}
		}},
	{total, "quotad_gossip_bytes_total",
		"Bytes of gossip, by direction and by what carried them: packets, or streams of whole states.", []string{"direction", "over"},
		func(n *Node, _ Status, is emit) {
			g := n.gossip.Stats()
			is(float64(g.PacketBytesIn), "in", "packets")
			is(float64(g.PacketBytesOut), "out", "packets")
			is(float64(g.StreamBytesIn), "in", "streams")
			is(float64(g.StreamBytesOut), "out", "streams")
		}},
	{gauge, "quotad_gossip_queued", "Changes that wait to be gossiped.", nil,
		func(n *Node, _ Status, is emit) { is(float64(n.gossip.Stats().BroadcastsQueued)) }},
	{total, "quotad_gossip_dropped_total",
		"What gossip dropped: changes that did not fit the queue or waited for over five seconds, messages and states that made no sense, streams beyond what may be open.", []string{"what"},
		func(n *Node, _ Status, is emit) {
			g := n.gossip.Stats()
			is(float64(g.BroadcastsDropped), "changes")
			is(float64(g.Rejected), "messages")
			is(float64(g.StreamsRefused), "streams")
		}},
	{total, "quotad_gossip_rejoins_total",
		"Exchanges begun with missing and new nodes, and those of them that succeeded.",
		[]string{"what"},
		func(n *Node, _ Status, is emit) {
			g := n.gossip.Stats()
			is(float64(g.RejoinsAttempted), "attempted")
			is(float64(g.RejoinsSucceeded), "succeeded")
		}},
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// nodeCollector collects all readings of a node.
type nodeCollector struct {
	node  *Node
	descs map[string]*prometheus.Desc // by name
}

func newNodeCollector(n *Node) nodeCollector {
	c := nodeCollector{n, map[string]*prometheus.Desc{}}
	for _, group := range readings {
		for _, r := range group {
			c.descs[r.name] = prometheus.NewDesc(r.name, r.help, r.labels, nil)
		}
	}
	return c
}

// Describe implements prometheus.Collector.
func (c nodeCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c nodeCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.node.Status()
	for _, group := range readings {
		for _, r := range group {
			r.read(c.node, s, func(v float64, labels ...string) {
				ch <- prometheus.MustNewConstMetric(c.descs[r.name], r.kind, v, labels...)
			})
		}
	}
}
