package mutants

// hole is a way in which more than a limit was admitted, or a limit could not be used. It was found
// in a design or a simulation before a rule closed it.
type hole struct {
	group, name string
	// unruled says why no mutant opens it: the code has no such rule, or the simulator runs nothing
	// that has it.
	unruled string
}

// holes are all that were found.
var holes = []hole{
	{group: "ledger", name: "lend racing with admit"},
	{group: "ledger", name: "borrowed rights promised on"},
	{group: "ledger", name: "returns without a shadow"},
	{group: "ledger", name: "shadow of the sliding kinds"},
	{group: "ledger", name: "promises for the next cell"},
	{group: "ledger", name: "late credit into a finished cell"},
	{group: "ledger", name: "retried request debiting twice"},
	{group: "ledger", name: "reply before fsync"},
	{group: "ledger", name: "two nodes of one region lending the same unit"},
	{group: "ledger", name: "asymmetric partition"},
	{group: "ledger", name: "forged or broken peer"},

	{group: "arithmetic", name: "settle before a share change"},
	{group: "arithmetic", name: "settle across a cell's end"},
	{group: "arithmetic", name: "bucket rights as a rate without catching up"},
	{group: "arithmetic", name: "burst rights clipped at the cell's end"},
	{group: "arithmetic", name: "queue turns across cells"},
	{group: "arithmetic", name: "remainders lost at denied decisions"},
	{group: "arithmetic", name: "NaN, negative, above 2^52"},
	{group: "arithmetic", name: "rounding every share up to 1"},
	{group: "arithmetic", name: "denied request spending another limit's units"},
	{group: "arithmetic", name: "decisions that share a script call"},

	{group: "owed", name: "what is owed is forgotten"},
	{group: "owed", name: "charge that is swallowed"},
	{group: "owed", name: "refill lent below zero"},

	{group: "classes", name: "batch taking the last unit"},
	{group: "classes", name: "a class's denial remembered for all"},
	{group: "classes", name: "demand of a class that may not use more"},

	{group: "time", name: "step back reopening a cell"},
	{group: "time", name: "step forward expiring the ledger, then back"},
	{group: "time", name: "mark poisoned by a far future"},
	{group: "time", name: "periods of a calendar that begin elsewhere"},
	{group: "time", name: "clocks apart for the sliding kinds"},
	{group: "time", name: "clocks apart for credits"},
	{group: "time", name: "clock of a single node"},
	{group: "time", name: "a store's time that is taken back"},

	{group: "loss", name: "FLUSHALL with scripts kept"},
	{group: "loss", name: "stale primary promoted again"},
	{group: "loss", name: "one key deleted"},
	{group: "loss", name: "writer's node down and peer away"},
	{group: "loss", name: "row in flight during recovery"},
	{group: "loss", name: "mate announcing a row after its journal was read"},
	{group: "loss", name: "answering peer having lost its own store"},
	{group: "loss", name: "two recoveries at once"},
	{group: "loss", name: "refund replayed after a loss"},
	{group: "loss", name: "journal restored from an old copy"},
	{group: "loss", name: "use of the cell before not restored"},
	{group: "loss", name: "fenced by one's own generation"},
	{group: "loss", name: "use that a node has not told of"},
	{group: "loss", name: "copy of a store that runs on"},
	{group: "loss", name: "node and store lost together"},
	{group: "loss", name: "closed bucket that a node used"},
	{group: "loss", name: "memory of a node is full"},
	{group: "loss", name: "second store of a region"},
	{group: "loss", name: "two processes with one name"},
	{group: "loss", name: "store that another version wrote"},

	{group: "documents", name: "regions under different documents"},
	{group: "documents", name: "a region that is fenced and does not know it"},
	{group: "documents", name: "barrier completing inside a cell"},
	{group: "documents", name: "acknowledgement of a later epoch taken for an earlier"},
	{group: "documents", name: "one version with two contents"},
	{group: "documents", name: "restarted node on an old file"},
	{group: "documents", name: "changed window or algorithm under the same name"},
	{group: "documents", name: "weights summed over who is alive"},

	{group: "local", name: "store out of reach for some nodes only"},
	{group: "local", name: "deny cache outliving a raised limit"},
	{group: "local", name: "chunks returned twice or spent after their cell"},
	{group: "local", name: "units that a client holds given back twice or spent too late"},

	{group: "varied", name: "refund of more than was charged"},
	{group: "varied", name: "rights cleared together with use"},
	{group: "varied", name: "limit that denies although it must not"},

	{group: "dynamics", name: "asking the poorest lender first"},
	{group: "dynamics", name: "oscillation under anti-phase demand"},
	{group: "dynamics", name: "retry storms as demand"},
	{group: "dynamics", name: "client retries charged several times"},
	{group: "dynamics", name: "lender regret"},
	{group: "dynamics", name: "idle key that never lets go of its state"},
	{group: "dynamics", name: "large cost that no region can gather"},
	{group: "dynamics", name: "tokens lent in vain"},

	{group: "outside", name: "busy store taken for one out of reach"},
	{group: "outside", name: "server that waits for another"},
	{group: "outside", name: "invented members"},

	{group: "envoys", name: "assignment not taken beforehand"},
	{group: "envoys", name: "assignment taken back while its stream is broken"},
	{group: "envoys", name: "late report taken for one of now"},
	{group: "envoys", name: "assignment taken for sent"},
	{group: "envoys", name: "time to live by the wrong clock"},
	{group: "envoys", name: "token buckets rebuilt full"},
	{group: "envoys", name: "two nodes assigning the same rate"},
	{group: "envoys", name: "units of a window admitted twice"},
	{group: "envoys", name: "assigned rights kept from those who want them"},
	{group: "envoys", name: "report counted twice", unruled: "reports say what Envoys want, and never free rights"},
}
