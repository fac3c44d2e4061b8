package algorithms

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/quotad/quotad/quantity"
)

// reader reads a script's flat reply, value by value. After an error it reads zero values.
type reader struct {
	script string
	flat   []any
	at     int
	err    error
}

func read(script string, reply any) *reader {
	flat, ok := reply.([]any)
	if !ok {
		return &reader{script: script, err: fmt.Errorf("script %s: reply is %T, want a list",
			script, reply)}
	}
	return &reader{script: script, flat: flat}
}

func (r *reader) next() any {
	if r.err != nil {
		return nil
	}
	if r.at >= len(r.flat) {
		r.err = fmt.Errorf("script %s: reply ends after %d values", r.script, len(r.flat))
		return nil
	}
	r.at++
	return r.flat[r.at-1]
}

func (r *reader) num() int64 {
	v := r.next()
	n, ok := v.(int64)
	if !ok && r.err == nil {
		r.err = fmt.Errorf("script %s: value %d of the reply is %T, want a number", r.script, r.at,
			v)
	}
	return n
}

func (r *reader) str() string {
	v := r.next()
	s, ok := v.(string)
	if !ok && r.err == nil {
		r.err = fmt.Errorf("script %s: value %d of the reply is %T, want a string", r.script, r.at,
			v)
	}
	return s
}

func (r *reader) more() bool { return r.err == nil && r.at < len(r.flat) }

// end returns the first error, or one if values are left over.
func (r *reader) end() error {
	if r.more() {
		return fmt.Errorf("script %s: %d values too many in the reply", r.script, len(r.flat)-r.at)
	}
	return r.err
}

// head reads the common beginning of most guarded scripts' replies; ok reports whether more follows.
func (r *reader) head(of Terms) (h Head, state State, ok bool) {
	h.Status = Status(r.num())
	switch {
	case !r.more():
		return h, state, false
	case h.Status == StatusLost:
		h.Now, h.LostAt = quantity.StoreTime(r.num()), quantity.StoreTime(r.num())
		return h, state, false
	case h.Status == StatusCalendar:
		h.Now = quantity.StoreTime(r.num())
		return h, state, false
	}
	h.Now, state = quantity.StoreTime(r.num()), r.state(of)
	return h, state, h.Status == StatusOK && r.err == nil
}

// state reads a bucket's state. Its entitlement is that of the terms that the caller gave.
func (r *reader) state(of Terms) State {
	return State{Cell: quantity.Cell(r.num()), Entitlement: of.Entitlement, Reset: r.num(),
		Share: quantity.Units(r.num()), NextShare: quantity.Units(r.num()),
		Used:   quantity.Units(r.num()),
		Fading: quantity.Units(r.num()), Free: quantity.Units(r.num()),
		ExistsUntil: quantity.StoreTime(r.num()), Doubt: quantity.StoreTime(r.num()),
		Shut: quantity.StoreTime(r.num())}
}

func (r *reader) row() Row {
	return Row{Lent: quantity.Units(r.num()), Returned: quantity.Units(r.num()),
		Borrowed: quantity.Units(r.num()), Regained: quantity.Units(r.num()),
		BurstLent: quantity.Units(r.num()), BurstBorrowed: quantity.Units(r.num())}
}

// Parse reads the reply to c.
func (c Lend) Parse(reply any) (Given, error) {
	r := read(LendScript.Name, reply)
	h, state, ok := r.head(c.Terms)
	g := Given{Head: h, State: state}
	if ok {
		g.Row = r.row()
		g.Spare, g.SpareBurst = quantity.Units(r.num()), quantity.Units(r.num())
	}
	return g, r.end()
}

// Parse reads the reply to c.
func (c Assign) Parse(reply any) (Assigned, error) {
	r := read(AssignScript.Name, reply)
	h, state, ok := r.head(c.Terms)
	g := Assigned{Head: h, State: state}
	if ok {
		g.Held, g.Returned = quantity.Units(r.num()), quantity.Units(r.num())
		g.Spare = quantity.Units(r.num())
	}
	return g, r.end()
}

// Parse reads the reply to c.
func (c Credit) Parse(reply any) (Credited, error) {
	r := read(CreditScript.Name, reply)
	h, state, ok := r.head(c.Terms)
	g := Credited{Head: h, State: state}
	if ok {
		g.Row = r.row()
	}
	return g, r.end()
}

// Parse reads the reply to c.
func (c Inspect) Parse(reply any) (Inspected, error) {
	return parseInspected(read(InspectScript.Name, reply), c.Terms)
}

// Parse reads the reply to c.
func (c Restore) Parse(reply any) (Restored, error) {
	return parseInspected(read(RestoreScript.Name, reply), c.Terms)
}

func parseInspected(r *reader, of Terms) (Inspected, error) {
	h, state, _ := r.head(of)
	g := Inspected{Head: h, State: state}
	for r.more() {
		g.Rows = append(g.Rows, PeerRow{Cell: quantity.Cell(r.num()), Peer: r.str(), Row: r.row()})
	}
	sortRows(g.Rows)
	return g, r.end()
}

// Parse reads the reply to c.
func (c Recall) Parse(reply any) (Recalled, error) {
	r := read(RecallScript.Name, reply)
	g := Recalled{Head: Head{Status: Status(r.num())}}
	if g.Status == StatusCalendar {
		g.Now = quantity.StoreTime(r.num())
	}
	if g.Status != StatusOK || r.err != nil {
		return g, r.end()
	}
	g.Now, g.LostAt = quantity.StoreTime(r.num()), quantity.StoreTime(r.num())
	for r.more() {
		g.Rows = append(g.Rows, RememberedRow{Cell: quantity.Cell(r.num()),
			Lent: quantity.Units(r.num()), Returned: quantity.Units(r.num())})
	}
	slices.SortFunc(g.Rows, func(a, b RememberedRow) int { return cmp.Compare(a.Cell, b.Cell) })
	return g, r.end()
}

// Parse reads the reply to c.
func (c Book) Parse(reply any) (Booked, error) {
	r := read(BookScript.Name, reply)
	b := Booked{Head: Head{Status: Status(r.num())}}
	switch b.Status {
	case StatusOK:
		b.Now, b.Done = quantity.StoreTime(r.num()), r.num() == 1
	case StatusLost:
		b.Now, b.LostAt = quantity.StoreTime(r.num()), quantity.StoreTime(r.num())
	case StatusCalendar:
		b.Now = quantity.StoreTime(r.num())
	}
	return b, r.end()
}

// Parse reads the reply to c.
func (c Reset) Parse(reply any) (Cleared, error) {
	r := read(ResetScript.Name, reply)
	h, state, _ := r.head(c.Terms)
	return Cleared{Head: h, State: state}, r.end()
}

// Parse reads the reply to c.
func (c Settle) Parse(reply any) (Settled, error) {
	r := read(SettleScript.Name, reply)
	g := Settled{Head: Head{Status: Status(r.num())}}
	switch g.Status {
	case StatusLost:
		g.Now, g.LostAt = quantity.StoreTime(r.num()), quantity.StoreTime(r.num())
	case StatusCalendar:
		g.Now = quantity.StoreTime(r.num())
	}
	if g.Status != StatusOK || r.err != nil {
		return g, r.end()
	}
	g.Now, g.Repeated, g.Used = quantity.StoreTime(r.num()), r.num() == 1, quantity.Units(r.num())
	for range c.Charges {
		g.Charges = append(g.Charges, SettledCharge{Back: quantity.Units(r.num()), Refusal: Refusal(r.num()),
			Charged: quantity.Units(r.num()), Owed: quantity.Units(r.num())})
	}
	return g, r.end()
}

// Parse reads the reply to c.
func (c Open) Parse(reply any) (Opened, error) {
	r := read(OpenScript.Name, reply)
	o := Opened{OK: r.num() == 1}
	generation := r.str()
	o.Region, o.Epoch = r.str(), r.str()
	lostAt := r.str()
	o.Secret, o.Replid = r.str(), r.str()
	since, begun, mark, answered, layout := r.str(), r.str(), r.str(), r.str(), r.str()
	o.Older = r.str() == "1"
	if err := r.end(); err != nil || generation == "" {
		return o, err
	}
	var numbers [5]int64
	for i, t := range [...]struct{ text, is string }{
		{lostAt, "the time of its last loss"},
		{begun, "the time of its beginning"},
		{mark, "the latest time it has shown"},
		{answered, "the latest time that a node had from it"},
		{layout, "the layout of what it holds"},
	} {
		var err error
		if numbers[i], err = strconv.ParseInt(t.text, 10, 64); err != nil {
			return o, fmt.Errorf("the store's token names %q as %s, which is no number: "+
				"empty the Redis (FLUSHALL), it will be opened anew", t.text, t.is)
		}
	}
	o.LostAt, o.Begun, o.Mark = quantity.StoreTime(numbers[0]), quantity.StoreTime(numbers[1]),
		quantity.StoreTime(numbers[2])
	o.Answered, o.Layout = quantity.StoreTime(numbers[3]), numbers[4]
	var err error
	if o.Since, err = strconv.ParseUint(since, 10, 64); err != nil {
		return o, fmt.Errorf(
			"the store's token names %q as its oldest generation, which is no number: empty the Redis (FLUSHALL), it will be opened anew", since)
	}
	if o.Generation, err = strconv.ParseUint(generation, 10, 64); err != nil {
		return o, fmt.Errorf(
			"the store's token names generation %q, which is no number: another program uses its keys; give quotad a database of its own", generation)
	}
	return o, nil
}

// Parse reads the reply to c.
func (c Adopt) Parse(reply any) (Adopted, error) {
	r := read(AdoptScript.Name, reply)
	a := Adopted{OK: r.num() == 1, Epoch: r.str()}
	a.Mark = quantity.StoreTime(r.num())
	return a, r.end()
}

// Parse reads the reply to c.
func (c Nodes) Parse(reply any) (NodeTimes, error) {
	r := read(NodesScript.Name, reply)
	n := NodeTimes{Status: Status(r.num())}
	var err error
	n.At, err = r.nodes()
	return n, cmp.Or(err, r.end())
}

// nodes reads node and time of each node that was answered, which end a reply.
func (r *reader) nodes() (all map[string]quantity.StoreTime, err error) {
	for r.at < len(r.flat) && r.err == nil {
		node, text := r.str(), r.str()
		at, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the store's token names %q as the time of node %q, which is no number: "+
				"empty the Redis (FLUSHALL), it will be opened anew", text, node)
		}
		put(&all, node, quantity.StoreTime(at))
	}
	return all, nil
}

// Parse reads the reply to c.
func (c Note) Parse(reply any) (Noted, error) {
	r := read(NoteScript.Name, reply)
	n := Noted{OK: r.num() == 1, Before: r.str()}
	return n, r.end()
}

// Parse reads the reply to c.
func (c Beat) Parse(reply any) (Beaten, error) {
	r := read(BeatScript.Name, reply)
	b := Beaten{Head: Head{Status: Status(r.num())}}
	if b.Status == StatusOK || b.Status == StatusClock {
		b.Now = quantity.StoreTime(r.num())
	}
	var err error
	b.At, err = r.nodes()
	return b, cmp.Or(err, r.end())
}

func sortRows(rows []PeerRow) {
	slices.SortFunc(rows, func(a, b PeerRow) int {
		return cmp.Or(cmp.Compare(a.Cell, b.Cell), cmp.Compare(a.Peer, b.Peer))
	})
}
