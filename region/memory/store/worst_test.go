package store

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/quantity"
)

// worst is a call with the worst allowed input: on a bucket with the most rows and, for a log, the
// most entries.
type worst struct {
	body   string
	script algorithms.Script
	call   func(st *stage, on []bucket, cell quantity.Cell) scripted
	more   bool              // as many buckets as a request may have
	most   int               // so many buckets; 0: one, or more
	only   []algorithms.Kind // the only kinds there is the call for; empty: there is for all
}

// concerns reports whether there is the call for a kind.
func (w worst) concerns(kind algorithms.Kind) bool {
	return len(w.only) == 0 || slices.Contains(w.only, kind)
}

// heldForEnvoys has the kinds of which nodes hold rights for Envoys.
var heldForEnvoys = []algorithms.Kind{algorithms.TokenBucket, algorithms.FixedWindow}

// scripted is a call with the methods that package algorithms gives it.
type scripted interface {
	Keys() []string
	Args() []any
}

// worstTerms returns the terms of the kind with which a bucket holds most: for a log, those with
// ten and more cells that weigh.
func worstTerms(kind algorithms.Kind) algorithms.Terms {
	limit := quantity.Units(algorithms.MaxLog)
	if kind != algorithms.SlidingWindowLog {
		limit = 1_000_000
	}
	const window = 3600 * 1_000_000
	t := algorithms.Terms{Kind: kind, Window: window, Cell: algorithms.CellLength(kind, window),
		Tick: algorithms.Tick(kind, limit, window), Entitlement: limit}
	if kind.Sliding() {
		t.ClockMargin = algorithms.ClockMargin
	}
	if kind.Bucket() {
		t.Burst = limit
	}
	return t
}

// crowded brings a bucket to where it has used most of what it holds, and has rows with as many
// peers as allowed in each cell that weighs.
func crowded(st *stage, on bucket) {
	if on.terms.Kind == algorithms.SlidingWindowLog {
		st.singly(on, int(on.terms.Entitlement)-2000)
	} else {
		st.decide(on, on.terms.Entitlement/2)
	}
	crowd(st, on)
}

// crowd writes as many rows as a bucket may have, with peers and of nodes. What is held for Envoys
// stands before the rows. What those with peers come to is summed up by a call that writes some.
func crowd(st *stage, on bucket) {
	now := inspect(st.b, st.Store, on.id, on.terms)
	cells := quantity.Cell(0)
	for on.terms.Weighs(now.State.Cell-cells) > now.Now {
		cells++
	}
	peers := algorithms.MaxRows(on.terms.Kind) / int64(cells+1)
	var front, body strings.Builder
	for cell := now.State.Cell - cells + 1; cell <= now.State.Cell+1; cell++ {
		begins, held := body.Len(), quantity.Cell(0)
		lent := func(p int64) quantity.Cell { return 40 + (cell*7+quantity.Cell(p*p))%13 }
		for p := range peers {
			fmt.Fprintf(&body, "%d %s-%02d %d %d %d %d %d %d;", cell, longName, p, lent(p), 11, 30+p,
				5+p%3, 3, 2)
		}
		if !slices.Contains(heldForEnvoys, on.terms.Kind) {
			continue
		}
		for p := range int64(algorithms.MaxHolders) {
			fmt.Fprintf(&body, "%d =%s-%02d %d 0 0 %d 0 0;", cell, longName, p, lent(p), 5+p%3)
			held += lent(p) - quantity.Cell(5+p%3)
		}
		fmt.Fprintf(&front, "@%d 0 0 0 0 0 %d %d;", cell, body.Len()-begins, held)
	}
	if err := clientOf(st.Store).HSet(context.Background(), BucketKey(Whole, on.id), "rows",
		front.String()+body.String()).Err(); err != nil {
		st.b.Fatal(err)
	}
	// A call that writes rows sums them up.
	credit(st.b, st.Store, algorithms.Credit{Fence: under(epoch),
		Target: algorithms.Target{Key: BucketKey(Whole, on.id), Terms: on.terms},
		Announcement: algorithms.Announcement{Peer: longName + "-00", PeerGeneration: 1, Cell: now.State.Cell, Lent: 80,
			Returned: 11, Most: 100_000}})
}

// longName and two more digits are about the longest name of a region or node.
var longName = strings.Repeat("x", 59)

func keyOf(on bucket) string { return BucketKey(Whole, on.id) }

// denials returns as many costs as one call may have. None of them fits, and each differs from the
// others where that is allowed.
func denials(of algorithms.Terms, buckets int64) []quantity.Units {
	var batch algorithms.Batch
	for range buckets {
		batch.Counts(of.Kind)
	}
	var costs []quantity.Units
	step := int64(70)
	if of.Kind == algorithms.SlidingWindowCounter {
		step = 12
	}
	for i := int64(0); i < step/2; i++ {
		cost := of.Entitlement - quantity.Units(i)*of.Entitlement/quantity.Units(step)
		if i > 0 && !batch.Add(cost) {
			break
		}
		if i == 0 {
			batch.Add(cost)
		}
		costs = append(costs, cost)
		if len(costs) > 1000 {
			break
		}
	}
	last := costs[len(costs)-1]
	for batch.Add(last) {
		costs = append(costs, last)
	}
	return costs
}

// costsThatFit returns as many costs as one call may have, all of which fit.
func costsThatFit(of algorithms.Terms, buckets int64) (costs []quantity.Units) {
	var batch algorithms.Batch
	for range buckets {
		batch.Counts(of.Kind)
	}
	for batch.Add(1) {
		costs = append(costs, 1)
	}
	return costs
}

// decideEach is as many decisions as one call may have, each on a bucket of its own.
func decideEach(on []bucket, costs ...quantity.Units) (call algorithms.Items) {
	for _, b := range on {
		call.Add(algorithms.Decide{Fence: under(epoch), Commit: true, Costs: costs,
			Buckets: []algorithms.LimitTarget{{Target: algorithms.Target{Key: keyOf(b),
				Terms: b.terms}}}})
	}
	return call
}

func decideOn(on []bucket, costs []quantity.Units) algorithms.Items {
	c := algorithms.Decide{Fence: under(epoch), Commit: true, Costs: costs}
	for _, b := range on {
		c.Buckets = append(c.Buckets,
			algorithms.LimitTarget{Target: algorithms.Target{Key: keyOf(b), Terms: b.terms}})
	}
	var call algorithms.Items
	call.Add(c)
	return call
}

var worsts = []worst{
	{body: "decide, denied", script: algorithms.DecideScript, call: func(st *stage, on []bucket,
		_ quantity.Cell) scripted {
		return decideOn(on, denials(on[0].terms, int64(len(on))))
	}},
	{body: "decide, admitted", script: algorithms.DecideScript, call: func(st *stage, on []bucket,
		_ quantity.Cell) scripted {
		return decideOn(on, costsThatFit(on[0].terms, int64(len(on))))
	}},
	{body: "decide, denied, many buckets", script: algorithms.DecideScript, more: true,
		call: func(st *stage, on []bucket, _ quantity.Cell) scripted {
			return decideOn(on, denials(on[0].terms, int64(len(on))))
		}},
	{body: "decide, admitted, many buckets", script: algorithms.DecideScript, more: true,
		call: func(st *stage, on []bucket, _ quantity.Cell) scripted {
			return decideOn(on, costsThatFit(on[0].terms, int64(len(on))))
		}},
	{body: "decide, denied, many items", script: algorithms.DecideScript,
		most: algorithms.MaxItemsLoad, call: func(st *stage, on []bucket, _ quantity.Cell) scripted {
			all := on[0].terms.Entitlement
			return decideEach(on, all, all-1, all-2)
		}},
	{body: "decide, admitted, many items", script: algorithms.DecideScript,
		most: algorithms.MaxItemsLoad, call: func(st *stage, on []bucket, _ quantity.Cell) scripted {
			return decideEach(on, 1, 1, 1)
		}},
	{body: "decide, denied, many single items", script: algorithms.DecideScript,
		most: algorithms.MaxItemsLoad, call: func(st *stage, on []bucket, _ quantity.Cell) scripted {
			return decideEach(on, on[0].terms.Entitlement)
		}},
	{body: "decide, admitted, many single items", script: algorithms.DecideScript,
		most: algorithms.MaxItemsLoad, call: func(st *stage, on []bucket, _ quantity.Cell) scripted {
			return decideEach(on, 1)
		}},
	{body: "lend", script: algorithms.LendScript, call: func(st *stage, on []bucket,
		cell quantity.Cell) scripted {
		return algorithms.Lend{Fence: under(epoch), Target: algorithms.Target{Key: keyOf(on[0]),
			Terms: on[0].terms},
			Debit: algorithms.Debit{Peer: longName + "-03", Cell: cell,
				Returned: 20, Lent: 90, Cap: on[0].terms.Entitlement, Burst: 9, CapBurst: 100_000}}
	}},
	{body: "credit", script: algorithms.CreditScript, call: func(st *stage, on []bucket,
		cell quantity.Cell) scripted {
		return algorithms.Credit{Fence: under(epoch), Target: algorithms.Target{Key: keyOf(on[0]),
			Terms: on[0].terms},
			Announcement: algorithms.Announcement{Peer: longName + "-03", Cell: cell,
				PeerGeneration: 1, Lent: 90, Most: 100_000, MostBurst: 100_000}}
	}},
	{body: "assign", script: algorithms.AssignScript, only: heldForEnvoys,
		call: func(st *stage, on []bucket, cell quantity.Cell) scripted {
			return algorithms.Assign{Fence: under(epoch), Target: algorithms.Target{Key: keyOf(on[0]),
				Terms: on[0].terms}, Holder: longName + "-02",
				Cell: cell, Returned: 20, Held: 90}
		}},
	{body: "inspect", script: algorithms.InspectScript, call: func(st *stage, on []bucket,
		_ quantity.Cell) scripted {
		return algorithms.Inspect{Fence: under(epoch), Target: algorithms.Target{Key: keyOf(on[0]),
			Terms: on[0].terms}}
	}},
	{body: "recall", script: algorithms.RecallScript, call: func(st *stage, on []bucket,
		_ quantity.Cell) scripted {
		return algorithms.Recall{Fence: under(epoch), Target: algorithms.Target{Key: keyOf(on[0]),
			Terms: on[0].terms}, Peer: longName + "-03", PeerGeneration: 1}
	}},
	{body: "reset", script: algorithms.ResetScript, call: func(st *stage, on []bucket,
		_ quantity.Cell) scripted {
		return algorithms.Reset{Fence: under(epoch), Target: algorithms.Target{Key: keyOf(on[0]),
			Terms: on[0].terms}}
	}},
	{body: "book", script: algorithms.BookScript, call: func(st *stage, on []bucket,
		cell quantity.Cell) scripted {
		window := quantity.Cell(int64(inspect(st.b, st.Store, on[0].id, on[0].terms).Now) /
			on[0].terms.Window)
		return algorithms.Book{Fence: under(epoch), Target: algorithms.Target{Key: keyOf(on[0]),
			Terms: on[0].terms}, Node: "n1", Window: window, Units: 5}
	}},
	{body: "refund", script: algorithms.SettleScript, call: refundsMiddle},
	{body: "refund, many buckets", script: algorithms.SettleScript, more: true,
		call: refundsMiddle},
}

// refundsMiddle takes back a charge that lies in the middle of a log.
func refundsMiddle(st *stage, on []bucket, cell quantity.Cell) scripted {
	c := algorithms.Settle{Fence: under(epoch), Receipt: SettleKey(Whole, on[0].id),
		Once: OnceKey(Whole, "none"), Cost: 1, At: st.middle}
	if c.At == 0 {
		c.At = inspect(st.b, st.Store, on[0].id, on[0].terms).Now
	}
	for _, b := range on {
		c.Charges = append(c.Charges,
			algorithms.Charge{Target: algorithms.Target{Key: keyOf(b), Terms: b.terms}, Cell: cell})
	}
	return c
}

// each makes a call on copies of a model, a number of times.
func (w worst) each(st *stage, kind algorithms.Kind, times int, run func(scripted)) {
	model := bucket{id: "worst " + string(kind), terms: worstTerms(kind)}
	client := clientOf(st.Store)
	if client.Exists(context.Background(), keyOf(model)).Val() == 0 {
		crowded(st, model)
	}
	count := 1
	if w.more {
		count = int(algorithms.MaxLoad / algorithms.LoadOf(kind))
	}
	if w.most > 0 {
		count = w.most
	}
	for range times {
		var on []bucket
		for i := range count {
			to := bucket{fmt.Sprint(model.id, i), model.terms}
			if err := client.Copy(context.Background(), keyOf(model), keyOf(to), 0,
				true).Err(); err != nil {
				st.b.Fatal(err)
			}
			if kind.Bucket() { // whose cells are of seconds
				crowd(st, to)
			}
			on = append(on, to)
		}
		client.Del(context.Background(), SettleKey(Whole, on[0].id))
		run(w.call(st, on, inspect(st.b, st.Store, on[0].id, on[0].terms).State.Cell))
	}
}

// written returns a call's arguments and keys as the store sends them.
func (st *stage) written(c scripted) (args []any, keys []string) {
	if st.opened == nil {
		st.opened = clientOf(st.Store).HMGet(context.Background(), TokenKey(Whole),
			"generation").Val()
	}
	args = c.Args()
	args[0] = st.opened[0]
	args[2] = fmt.Sprint(clientOf(st.Store).Time(context.Background()).Val().UnixMicro())
	return args, append([]string{TokenKey(Whole)}, c.Keys()...)
}

// took runs a script once and returns how many microseconds it took: more than any if its bucket's
// cell ended before.
func (st *stage) took(script algorithms.Script, c scripted) float64 {
	args, keys := st.written(c)
	if err := clientOf(st.Store).ScriptLoad(context.Background(), script.Source).Err(); err != nil {
		st.b.Fatal(err)
	}
	_, before := st.scripts()
	reply, err := clientOf(st.Store).EvalSha(context.Background(), script.SHA, keys,
		args...).Slice()
	if script.Name == algorithms.DecideScript.Name { // the reply begins with the time, and is short if it is refused
		if len(reply) < 3 {
			st.b.Fatalf("%s: %v, %v", script.Name, reply, err)
		}
	} else if err == nil && reply[0] == int64(algorithms.StatusFinished) {
		return math.Inf(1)
	} else if err != nil || fmt.Sprint(reply[0]) != "0" {
		st.b.Fatalf("%s: %v, %v", script.Name, reply, err)
	}
	_, after := st.scripts()
	return float64(after - before)
}

// BenchmarkWorst prints what each script takes at its worst input: the least of several calls, in
// microseconds.
func BenchmarkWorst(b *testing.B) {
	t := table{}
	st := &stage{b: b, Store: node(b, fixtures.Process(b), first)}
	decide(b, st.Store, charge("first", 10, 1))
	for _, w := range worsts {
		for _, kind := range algorithms.Kinds {
			if !w.concerns(kind) {
				continue
			}
			b.Run(w.body+"/"+string(kind), func(b *testing.B) {
				if b.N == 1 {
					least := math.Inf(1) // other load on the machine can only add to this
					w.each(st.with(b), kind, 50,
						func(c scripted) { least = min(least, st.took(w.script, c)) })
					if math.IsInf(least, 1) {
						b.Fatal("each time a cell ended")
					}
					t.note(w.body, kind, fmt.Sprint(least))
				}
			})
		}
	}
	t.print()
}
