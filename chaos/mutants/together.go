package mutants

// sharing is the hole of the mutants here.
const sharing = "decisions that share a script call"

var together = []Mutant{
	{
		Name: "bucket-opened-for-each-item", Hole: sharing,
		Rule: "a bucket stands once in a call, however many decisions are about it",
		Edits: []Edit{
			{"algorithms/decide.lua", `    if not buckets[place] then`, `    if place then`},
		},
		Breaks: "ceiling: a label above L", Under: "requests on common buckets at the same time",
		Says: "failed after",
		Test: Test{"./algorithms", "TestLuaEqualsTwin"},
	},
	{
		Name: "last-bucket-is-not-written", Hole: sharing,
		Rule: "whatever was charged in a call is written",
		Edits: []Edit{
			{"algorithms/decide.lua", `    for i = 1, simple_buckets + several do
      if`, `    for i = 1, math.max(simple_buckets + several - 1, 1) do
      if`},
		},
		Breaks: "ceiling: a label above L", Under: "several requests at the same time",
		Says: "failed after",
		Test: Test{"./algorithms", "TestLuaEqualsTwin"},
	},
	{
		Name: "charged-in-spite-of-a-cost-out-of-range", Hole: sharing,
		Rule: "an item that is refused has charged nothing that a later one finds",
		Edits: []Edit{
			{"algorithms/decide.lua", `  if not plausible(costs, key, each) then return fail(IMPLAUSIBLE) end`, `  if not plausible(costs, key, each) then
    request(places, 1)
    n = before
    return fail(IMPLAUSIBLE)
  end`},
		},
		Breaks: "conservation: used above what was admitted", Under: "a caller that sends an impossible cost",
		Says: "failed after",
		Test: Test{"./algorithms", "TestLuaEqualsTwin"},
	},
	{
		Name: "unreadable-key-ends-the-call", Hole: sharing,
		Rule: "a key that cannot be read fails the items that are about it, and no other",
		Edits: []Edit{
			{"algorithms/decide.lua", `pcall(item, key, places, costs, each)`, `true, item(key, places, costs, each)`},
		},
		Breaks: "progress: requests of others fail", Under: "another program's key where a bucket should be",
		Says: "WRONGTYPE",
		Test: Test{"./region/store", "TestAnItemFailsAlone"},
	},
	{
		Name: "alternatives-deny-alone", Hole: sharing,
		Rule: "an alternative limit denies only if all alternative limits of the request do",
		Edits: []Edit{
			{"algorithms/twin.go", `a.Admitted = a.Admitted && !target.alone()`, `a.Admitted = a.Admitted && target.Shadow`},
		},
		Breaks: "use: units that are left are denied", Under: "limits of which one is full",
		Says: "false, want true",
		Test: Test{"./algorithms", "TestAlternativesDenyTogether"},
	},
	{
		Name: "one-cost-for-all-buckets", Hole: sharing,
		Rule: "a request with a cost for each bucket charges each its own",
		Edits: []Edit{
			{"algorithms/decide.lua", `    if each then cost = each[i] end
    if admitted`, `    if each then cost = each[1] end
    if admitted`},
		},
		Breaks: "conservation: used below what was admitted", Under: "descriptors of different hits",
		Says: "failed after",
		Test: Test{"./algorithms", "TestLuaEqualsTwin"},
	},
	{
		Name: "repetition-in-a-call-is-charged", Hole: sharing,
		Rule: "two requests with one id see each other in a call",
		Edits: []Edit{
			{"algorithms/decide.lua", `  local before = remembered[key]
  if before == nil then before = redis.call('GET', key) end`, `  local before = redis.call('GET', key)`},
		},
		Breaks: "conservation: a request is charged twice", Under: "a request sent again at once",
		Says: "Repeated:false",
		Test: Test{"./region/store", "TestDecideOnceInAPipeline"},
	},
	{
		Name: "epochs-share-a-call", Hole: sharing,
		Rule: "a call is of one epoch and generation",
		Edits: []Edit{
			{"algorithms/items.go", `} else if c.Fence != d.Fence || !c.commit`, `} else if !c.commit`},
		},
		Breaks: "documents: a request is decided under a document that is over", Under: "a document adopted while requests wait",
		Says: "shares true, want false",
		Test: Test{"./algorithms", "TestWhatSharesACall"},
	},
	{
		Name: "question-shares-a-call", Hole: sharing,
		Rule: "what only asks sees nothing of the others of a call, and they nothing of it",
		Edits: []Edit{
			{"algorithms/items.go", `!c.commit || !d.Commit ||`, `!d.Commit && c.load < 0 ||`},
		},
		Breaks: "conservation: what only asked was charged", Under: "peeks among requests",
		Says: "shares true, want false",
		Test: Test{"./algorithms", "TestWhatSharesACall"},
	},
	{
		Name: "what-was-left-counts-as-decided", Hole: sharing,
		Rule: "a decision that a call leaves comes with another one",
		Edits: []Edit{
			{"region/store/decide.go", `if r.Err == nil && r.Value.Each[k].Status == algorithms.StatusLater {`, `if r.Err == nil && r.Value.Each[k].Status > algorithms.StatusLater {`},
		},
		Breaks: "progress: requests are refused without a reason", Under: "many crowded buckets at the same time",
		Says: "left for another call",
		Test: Test{"./region/store", "TestCrowdedItemsAreLeftForAnotherCall"},
	},
	{
		Name: "plain-in-spite-of-rows", Hole: sharing,
		Rule: "a bucket of which rights were moved is not plain",
		Edits: []Edit{
			{"algorithms/plain.lua", `  local v = redis.pcall('HMGET', key, 'rows', 'c', 'u')
  local counted, used = v[2], 0
  if v.err or v[1] or`, `  local v = redis.pcall('HMGET', key, 'rows', 'c', 'u')
  local counted, used = v[2], 0
  if v.err or`},
		},
		Breaks: "ceiling: a label above L", Under: "rights that were lent",
		Says: "failed after",
		Test: Test{"./algorithms", "TestLuaEqualsTwin"},
	},
	{
		Name: "plain-in-spite-of-a-loss", Hole: sharing,
		Rule: "after a loss no bucket is plain",
		Edits: []Edit{
			{"algorithms/plain.lua", `commit and lost_at == 0`, `commit`},
		},
		Breaks: "ceiling: a label above L", Under: "a store that lost its data",
		Says: "failed after",
		Test: Test{"./algorithms", "TestLuaEqualsTwin"},
	},
	{
		Name: "plain-in-spite-of-a-deletion", Hole: sharing,
		Rule: "a bucket that is known to be there and is not is lost",
		Edits: []Edit{
			{"algorithms/plain.lua", `  local v = redis.pcall('HMGET', key, 'rows', 'c', 'u')
  local counted, used = v[2], 0
  if v.err or v[1] or not counted and known > t.now then return v[1] and v end`, `  local v = redis.pcall('HMGET', key, 'rows', 'c', 'u')
  local counted, used = v[2], 0
  if v.err or v[1] then return v[1] and v end`},
		},
		Breaks: "ceiling: a label above L", Under: "a deleted key",
		Says: "known until",
		Test: Test{"./algorithms", "TestADeletedPlainBucket"},
	},
	{
		Name: "simple-item-on-a-shared-bucket", Hole: sharing,
		Rule: "an item is simple only if no other item is about its buckets",
		Edits: []Edit{
			{"algorithms/plain.go", `		if c.buckets[c.at[at+i]].items > 1 {`, `		if c.buckets[c.at[at+i]].items < 1 {`},
		},
		Breaks: "ceiling: a label above L", Under: "several requests at the same time",
		Says: "failed after",
		Test: Test{"./algorithms", "TestLuaEqualsTwin"},
	},
	{
		Name: "plain-bucket-without-an-end", Hole: sharing,
		Rule: "a key ends when its bucket counts no more",
		Edits: []Edit{
			{"algorithms/plain.lua", `      redis.call('PEXPIREAT', key, t.expires)`, `      redis.call('PERSIST', key)`},
		},
		Breaks: "memory: keys outlive their use", Under: "nothing",
		Says: "lasts",
		Test: Test{"./region/store", "TestTTLOfEachKind"},
	},
	{
		Name: "several-plain-buckets-charged-one-by-one", Hole: sharing,
		Rule: "a request that one limit denies spends nothing of the others",
		Edits: []Edit{
			{"algorithms/plain.lua", `    if first == nil then return false end
    ts[i]`, `    if first == nil then return false end
    if i < count then charge(t, KEYS[place + i], one, two, first, mark) end
    ts[i]`},
		},
		Breaks: "conservation: used above what was admitted", Under: "a request with several limits",
		Says: "free .*, want",
		Test: Test{"./algorithms", "TestOnePlainBucketDenies"},
	},
	{
		Name: "answers-the-wrong-caller", Hole: sharing,
		Rule: "each request of a call is told its own decision",
		Edits: []Edit{
			{"region/admit/batcher.go", `index: n, of: of, err: r.Err}`, `index: min(n, 0), of: of, err: r.Err}`},
		},
		Breaks: "ceiling: a label above L", Under: "several requests in a call",
		Says:  "ceiling: ",
		Flags: []string{"--spanning"}, Within: 100,
	},
	{
		Name: "runs-of-unlike-costs", Hole: sharing,
		Rule: "only items that differ in the bucket alone are told as one",
		Edits: []Edit{
			{"algorithms/plain.go", `|| d.Costs[0] != c.Each[first].Costs[0] ||`, `||`},
		},
		Breaks: "ceiling: a cost is charged as another", Under: "several requests in a call",
		Says: "item 2: .* free, want 95",
		Test: Test{"./algorithms", "TestRunsOfSimpleItems"},
	},
	{
		Name: "one-cost-charged-once-for-several", Hole: sharing,
		Rule: "of several requests of one cost each is charged",
		Edits: []Edit{
			{"algorithms/plain.lua", `return true, used + sum, 0, not there end`, `return true, used + cost, 0, not there end`},
		},
		Breaks: "ceiling: a label above L", Under: "several requests on one bucket",
		Says: "round 0: admitted .*, want",
		Test: Test{"./algorithms", "TestOneCostSeveralTimes"},
	},
	{
		Name: "one-cost-denied-where-some-fit", Hole: sharing,
		Rule: "of several requests of one cost those that fit are admitted",
		Edits: []Edit{
			{"algorithms/plain.lua", `  if cost <= t.entitlement - used then return end
`, ``},
		},
		Breaks: "use: a denial where there is room", Under: "several requests on one bucket",
		Says: "round 2: admitted .*, want",
		Test: Test{"./algorithms", "TestOneCostSeveralTimes"},
	},
	{
		Name: "runs-of-unlike-knowledge", Hole: sharing,
		Rule: "only items that differ in the bucket alone are told as one",
		Edits: []Edit{
			{"algorithms/plain.go", ` ||
			its.existsUntil != b.existsUntil {`, ` {`},
		},
		Breaks: "ceiling: a deleted bucket is taken for a new one", Under: "several requests in a call",
		Says: "item 4: .* free, want 0",
		Test: Test{"./algorithms", "TestRunsOfSimpleItems"},
	},
	{
		Name: "late-answer-for-another", Hole: sharing,
		Rule: "what a request waited with in vain is not used again",
		Edits: []Edit{
			{"region/admit/ask.go", `	if heard {`, `	if heard || !heard {`},
		},
		Breaks: "ceiling: a request is told another one's answer", Under: "answers after the deadline",
		Says: "want its own",
		Test: Test{"./region/admit", "TestALateAnswerIsNobodyElses"},
	},
	{
		Name: "charge-of-an-earlier-attempt-is-undone", Hole: sharing,
		Rule: "a request over several shards undoes only what it charged itself",
		Edits: []Edit{
			{"region/admit/spanning.go", `} else if own.commit && !a.decided.Repeated {`, `} else if own.commit {`},
		},
		Breaks: "conservation: used below what was admitted", Under: "a request_id sent again while another shard is lost",
		Says: "0 used of the first part",
		Test: Test{"./region/admit", "TestSpanningRepeatedPartStays"},
	},
}
