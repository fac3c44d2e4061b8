package mutants

// Hole is a way in which more than a limit was admitted, or a limit could not be used. It was found
// in a design or a simulation before a rule closed it.
type Hole struct {
	Group string
	Name  string
	// Unruled says why no mutant opens it: the code has no such rule, or the simulator runs nothing
	// that has it.
	Unruled string
}

// Holes are all holes that were found.
var Holes = []Hole{
	{Group: "ledger", Name: "lend racing with admit"},
	{Group: "ledger", Name: "borrowed rights promised on"},
	{Group: "ledger", Name: "returns without a shadow"},
	{Group: "ledger", Name: "shadow of the sliding kinds"},
	{Group: "ledger", Name: "promises for the next cell"},
	{Group: "ledger", Name: "late credit into a finished cell"},
	{Group: "ledger", Name: "retried request debiting twice"},
	{Group: "ledger", Name: "reply before fsync"},
	{Group: "ledger", Name: "two nodes of one region lending the same unit"},
	{Group: "ledger", Name: "asymmetric partition"},
	{Group: "ledger", Name: "forged or broken peer"},

	{Group: "arithmetic", Name: "settle before a share change"},
	{Group: "arithmetic", Name: "settle across a cell's end"},
	{Group: "arithmetic", Name: "bucket rights as a rate without catching up"},
	{Group: "arithmetic", Name: "burst rights clipped at the cell's end"},
	{Group: "arithmetic", Name: "queue turns across cells"},
	{Group: "arithmetic", Name: "remainders lost at denied decisions"},
	{Group: "arithmetic", Name: "NaN, negative, above 2^52"},
	{Group: "arithmetic", Name: "rounding every share up to 1"},
	{Group: "arithmetic", Name: "denied request spending another limit's units"},
	{Group: "arithmetic", Name: "decisions that share a script call"},

	{Group: "time", Name: "step back reopening a cell"},
	{Group: "time", Name: "step forward expiring the ledger, then back"},
	{Group: "time", Name: "mark poisoned by a far future"},
	{Group: "time", Name: "periods of a calendar that begin elsewhere"},
	{Group: "time", Name: "clocks apart for the sliding kinds"},
	{Group: "time", Name: "clocks apart for credits"},
	{Group: "time", Name: "clock of a single node"},
	{Group: "time", Name: "a store's time that is taken back"},

	{Group: "loss", Name: "FLUSHALL with scripts kept"},
	{Group: "loss", Name: "stale primary promoted again"},
	{Group: "loss", Name: "one key deleted"},
	{Group: "loss", Name: "writer's node down and peer away"},
	{Group: "loss", Name: "row in flight during recovery"},
	{Group: "loss", Name: "mate announcing a row after its journal was read"},
	{Group: "loss", Name: "answering peer having lost its own store"},
	{Group: "loss", Name: "two recoveries at once"},
	{Group: "loss", Name: "refund replayed after a loss"},
	{Group: "loss", Name: "journal restored from an old copy"},
	{Group: "loss", Name: "use of the cell before not restored"},
	{Group: "loss", Name: "fenced by one's own generation"},
	{Group: "loss", Name: "use that a node has not told of"},
	{Group: "loss", Name: "copy of a store that runs on"},
	{Group: "loss", Name: "node and store lost together"},
	{Group: "loss", Name: "closed bucket that a node used"},
	{Group: "loss", Name: "memory of a node is full"},
	{Group: "loss", Name: "second store of a region"},
	{Group: "loss", Name: "two processes with one name"},
	{Group: "loss", Name: "store that another version wrote"},

	{Group: "documents", Name: "regions under different documents"},
	{Group: "documents", Name: "a region that is fenced and does not know it"},
	{Group: "documents", Name: "barrier completing inside a cell"},
	{Group: "documents", Name: "acknowledgement of a later epoch taken for an earlier"},
	{Group: "documents", Name: "one version with two contents"},
	{Group: "documents", Name: "restarted node on an old file"},
	{Group: "documents", Name: "changed window or algorithm under the same name"},
	{Group: "documents", Name: "weights summed over who is alive"},

	{Group: "local", Name: "store out of reach for some nodes only"},
	{Group: "local", Name: "deny cache outliving a raised limit"},
	{Group: "local", Name: "chunks returned twice or spent after their cell"},
	{Group: "local", Name: "units that a client holds given back twice or spent too late"},

	{Group: "varied", Name: "refund of more than was charged"},
	{Group: "varied", Name: "rights cleared together with use"},
	{Group: "varied", Name: "limit that denies although it must not"},

	{Group: "dynamics", Name: "asking the poorest lender first"},
	{Group: "dynamics", Name: "oscillation under anti-phase demand"},
	{Group: "dynamics", Name: "retry storms as demand"},
	{Group: "dynamics", Name: "client retries charged several times"},
	{Group: "dynamics", Name: "lender regret"},
	{Group: "dynamics", Name: "idle key that never lets go of its state"},

	{Group: "outside", Name: "busy store taken for one out of reach"},
	{Group: "outside", Name: "invented members"},

	{Group: "envoys", Name: "assignment not taken beforehand"},
	{Group: "envoys", Name: "assignment taken back while its stream is broken"},
	{Group: "envoys", Name: "time to live by the wrong clock"},
	{Group: "envoys", Name: "token buckets rebuilt full"},
	{Group: "envoys", Name: "two nodes assigning the same rate"},
	{Group: "envoys", Name: "units of a window admitted twice"},
	{Group: "envoys", Name: "assigned rights kept from those who want them"},
	{Group: "envoys", Name: "report counted twice", Unruled: "reports say what Envoys want, and never free rights"},
}
