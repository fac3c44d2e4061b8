package algorithms

import (
	"strconv"

	"github.com/quotad/quotad/quantity"
)

// args collects the arguments of a script. Numbers are int64, which a client writes with all their
// digits.
type args []any

func (a *args) str(v ...string) {
	for _, s := range v {
		*a = append(*a, s)
	}
}

func (a *args) num(v ...int64) {
	for _, n := range v {
		*a = append(*a, n)
	}
}

func (a *args) fence(g Fence) {
	a.str(strconv.FormatUint(g.Generation, 10), g.Epoch)
	a.num(int64(g.Clock), MaxClockStep)
	a.str(g.Node)
	a.num(int64(g.Seen))
}

// terms writes the terms of a call with a fence. A cell of length 0 says that a calendar follows.
func (a *args) terms(f Fence, of Terms) {
	a.str(string(of.Kind))
	length := of.Cell
	if of.Calendar != nil {
		length = 0
	}
	a.num(of.Window, length, of.Tick, int64(of.Entitlement), int64(of.Burst), of.ClockMargin,
		flag(of.Recovered))
	if of.Calendar == nil {
		return
	}
	first := f.period(of.Calendar) - periodsBefore
	a.num(int64(first))
	for i := range quantity.Cell(periodBegins) {
		a.num(min(int64(of.Calendar.Opens(first+i)), MaxUnits))
	}
}

// Scripts have no calendar. A call names the period in which the store's time should be, some
// before and some after it, by when they begin: it has periodBegins beginnings, periodsBefore of
// them before that of the period. The store's time may also be in the period before or after. Rows
// and losses that a script works with concern its own period and three around it.
const (
	periodBegins  = 7
	periodsBefore = 2
)

// period returns the period of a calendar in which the store's time should be.
func (f Fence) period(c Calendar) quantity.Cell { return c.At(max(f.Clock, f.Seen)) }

// names reports whether a call names the periods that a script needs at a store time.
func (f Fence) names(t Terms, now quantity.StoreTime) bool {
	if t.Calendar == nil {
		return true
	}
	apart := t.Calendar.At(now) - f.period(t.Calendar)
	return -1 <= apart && apart <= 1
}

func (a *args) target(f Fence, t Target) {
	a.terms(f, t.Terms)
	a.num(int64(t.ExistsUntil))
}

// about begins the arguments of a call about one bucket.
func about(f Fence, t Target) (a args) {
	a.fence(f)
	a.target(f, t)
	return a
}

// Args returns the script's ARGV.
func (c Lend) Args() []any {
	a := about(c.Fence, c.Target)
	a.str(c.Peer)
	a.num(int64(c.Cell), int64(c.Returned), int64(c.Lent), int64(c.Kept), int64(c.Cap),
		int64(c.Burst), int64(c.KeptBurst), int64(c.CapBurst), int64(c.LeastBurst))
	return a
}

// Args returns the script's ARGV.
func (c Assign) Args() []any {
	a := about(c.Fence, c.Target)
	a.str(c.Holder)
	a.num(int64(c.Cell), int64(c.Known), int64(c.Returned), int64(c.Held), int64(c.Kept))
	return a
}

// Args returns the script's ARGV.
func (c Credit) Args() []any {
	a := about(c.Fence, c.Target)
	a.str(c.Peer)
	a.num(int64(c.PeerGeneration), int64(c.Cell), int64(c.Lent), int64(c.Returned), int64(c.Most),
		int64(c.Burst), int64(c.MostBurst), int64(c.At))
	return a
}

// Args returns the script's ARGV.
func (c Inspect) Args() []any {
	return about(c.Fence, Target{Terms: c.Terms})
}

// Args returns the script's ARGV.
func (c Settle) Args() []any {
	var a args
	a.fence(c.Fence)
	a.num(int64(c.At), int64(c.Cost), int64(c.Used), int64(c.RememberedUntil()))
	for _, charge := range c.Charges {
		a.target(c.Fence, charge.Target)
		a.num(int64(charge.Cell), int64(charge.Until), int64(charge.MostOwed))
	}
	return a
}

// Args returns the script's ARGV.
func (c Reset) Args() []any {
	return about(c.Fence, c.Target)
}

// Args returns the script's ARGV.
func (c Recall) Args() []any {
	a := about(c.Fence, c.Target)
	a.str(c.Peer)
	a.num(int64(c.PeerGeneration))
	return a
}

// Args returns the script's ARGV.
func (c Restore) Args() []any {
	a := about(c.Fence, Target{Terms: c.Terms})
	a.num(int64(c.LostAt), int64(c.Cap), int64(c.Most), int64(c.Use.Cell), int64(c.Use.Units),
		int64(c.Use.At))
	for _, names := range [][]string{c.KnownPeers, c.UnknownPeers} {
		a.num(int64(len(names)))
		a.str(names...)
	}
	for _, row := range c.Rows {
		a.num(int64(row.Cell))
		a.str(row.Peer)
		a.num(int64(row.Lent), int64(row.Returned))
	}
	return a
}

// Args returns the script's ARGV.
func (c Book) Args() []any {
	a := about(c.Fence, c.Target)
	a.str(c.Node)
	a.num(int64(c.Window), int64(c.Units))
	return a
}

// Args returns the script's ARGV; KEYS is the token's key alone.
func (c Open) Args() []any {
	var a args
	expected := ""
	if c.Expected > 0 {
		expected = strconv.FormatUint(c.Expected, 10)
	}
	a.str(expected, strconv.FormatUint(c.Generation, 10), c.Region, c.Epoch)
	a.num(flag(c.Lost), int64(c.Seen))
	a.str(c.Secret, c.Replid, c.Node)
	a.num(c.Layout, int64(c.Mark))
	return a
}

// Args returns the script's ARGV; KEYS is the token's key alone.
func (c Nodes) Args() []any {
	var a args
	a.str(strconv.FormatUint(c.Generation, 10))
	return a
}

// Args returns the script's ARGV; KEYS is the token's key alone.
func (c Note) Args() []any {
	var a args
	a.str(strconv.FormatUint(c.Generation, 10), c.Name, c.Text)
	return a
}

// Args returns the script's ARGV; KEYS is the token's key alone.
func (c Adopt) Args() []any {
	var a args
	a.str(strconv.FormatUint(c.Generation, 10), c.Expected, c.Epoch)
	a.num(int64(len(c.Forgotten)))
	a.str(c.Forgotten...)
	return a
}

// Args returns the script's ARGV; KEYS is the token's key alone.
func (c Beat) Args() []any {
	var a args
	a.fence(c.Fence)
	return a
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
