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
		Rule: "a request that could not be in time is not decided, whatever on_store_failure says",
		Edits: []Edit{
			{"region/admit/ask.go", `if isOverload(a.err) {`, `if isOverload(a.err) && a.err == nil {`},
		},
		Breaks: "ceiling: limits are decided without the store", Under: "many more callers than the store has time for",
		Says: "store_failure",
		Test: Test{"./region/admit", "TestNobodyIsDeniedForWantOfTime"},
	},
	{
		Name: "waits-whatever-the-time", Hole: "busy store taken for one out of reach",
		Rule: "what can no longer be answered in time leaves the queue before the store is asked",
		Edits: []Edit{
			{"region/admit/admission.go", `if !w.until.After(now) || !only && w.until.Before(now.Add(takes)) {`, `if takes < 0 && only && w.until.After(now) {`},
		},
		Breaks: "use: units are charged for callers who have given up", Under: "many more callers than the store has time for",
		Says: "charged for nobody",
		Test: Test{"./region/admit", "TestNobodyIsDeniedForWantOfTime"},
	},
	{
		Name: "nobody-finds-out-that-the-store-is-fast-again", Hole: "busy store taken for one out of reach",
		Rule: "while nothing is under way, one request is let through whatever the estimate says",
		Edits: []Edit{
			{"region/admit/admission.go", `b.sent == 0 && len(batch) == 0`, `b.sent < 0 && len(batch) == 0`},
		},
		Breaks: "progress: batches are refused for ever", Under: "a store that was slow and is fast again",
		Says: "batches are not decided again",
		Test: Test{"./region/admit", "TestBatchesAreDecidedAgain"},
	},
	{
		Name: "decides-when-the-caller-has-gone", Hole: "busy store taken for one out of reach",
		Rule: "a request is decided before its caller gives up",
		Edits: []Edit{
			{"region/admit/patience.go", `f.answering = min(answerBefore, time.Until(deadline)/2)
		f.expires = deadline.Add(-f.answering)
		f.hurry()`, `_ = deadline`},
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
