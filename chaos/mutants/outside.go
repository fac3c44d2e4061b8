package mutants

var outside = []Mutant{
	{
		Name: "busy-store-is-out-of-reach", Hole: "busy store taken for one out of reach",
		Rule: "a call that is late while its server answers others trips no breaker",
		Edits: []Edit{
			{"region/admit/batcher.go", `if store.Late(err) && b.breakers.answers(`, `if store.Late(nil) && b.breakers.answers(`},
		},
		Breaks: "ceiling: limits are decided without the store", Under: "ten times the load that the store can do",
		Says: "another was answered just now",
		Test: Test{"./region/admit", "TestLateWhileRepliesFlow"},
	},
	{
		Name: "queue-full-is-a-failure", Hole: "busy store taken for one out of reach",
		Rule: "a request that could not be in time is refused, whatever on_store_failure says",
		Edits: []Edit{
			{"region/admit/ask.go", `if isQueueFull(a.err) {`, `if isQueueFull(a.err) && a.err == nil {`},
		},
		Breaks: "ceiling: limits are decided without the store", Under: "ten times the load that the store can do",
		Says: "flood: .*store_failure",
		Test: Test{"./region/admit", "TestOverloadTakesFromNobody"},
	},
	{
		Name: "waits-whatever-the-time", Hole: "busy store taken for one out of reach",
		Rule: "only what can be decided in time may wait",
		Edits: []Edit{
			{"region/admit/admission.go", `if left < takes {`, `if left < takes-left-takes {`},
		},
		Breaks: "use: round trips end in vain", Under: "ten times the load that the store can do",
		Says: "round trips were late",
		Test: Test{"./region/admit", "TestOverloadTakesFromNobody"},
	},
	{
		Name: "decides-when-the-caller-has-gone", Hole: "busy store taken for one out of reach",
		Rule: "a request is decided before its caller gives up",
		Edits: []Edit{
			{"region/admit/patience.go", `f.expires = deadline.Add(-min(answerBefore, time.Until(deadline)/2))
		f.way.expire(f.expires)`, `_ = deadline`},
		},
		Breaks: "progress: on_store_failure decides for nobody", Under: "a store that is silent",
		Says: "decided after",
		Test: Test{"./region/admit", "TestDecidedBeforeTheCallerGivesUp"},
	},
	{
		Name: "any-number-of-members", Hole: "invented members",
		Rule: "of each region no more are members than a bound",
		Edits: []Edit{
			{"gossip/admission.go", `if a.count[group] >= a.maxGroup {`, `if a.count[group] < 0 {`},
		},
		Breaks: "liveness: true nodes are not called any more", Under: "packets that name members",
		Says: "a new one: ",
		Test: Test{"./gossip", "TestWhoAnsweredComesFirst"},
	},
	{
		Name: "names-without-a-pace", Hole: "invented members",
		Rule: "of each region no more new names than one a second are taken in",
		Edits: []Edit{
			{"gossip/admission.go", `if n.left == 0 {`, `if n.left < -1<<40 {`},
		},
		Breaks: "liveness: state grows without bound", Under: "packets that name members and bury them",
		Says: "names were admitted in",
		Test: Test{"./gossip", "TestNewNamesAreBoundedInTime"},
	},
}
