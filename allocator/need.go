package allocator

// Horizon is how far ahead of its use a region asks for rights, in microseconds. It asks for
// little and often, so that it takes from others little that it turns out not to need.
const Horizon = 3 * Second

// Short returns how many units a region lacks: what it will need within the horizon, at most its
// target, less its share. opens is how long it is until the cell opens, in microseconds (0: it is
// open).
func Short(o Outlook, opens, target, share int64) int64 {
	return max(min(target, o.Until(max(Horizon-opens, 0)))-share, 0)
}

// Quantum is the smallest voluntary move, in units: a five-hundredth of the limit.
func Quantum(limit int64) int64 { return max(limit/500, 1) }

// Move returns how much of a shortage to ask for at one tick, in units. A region in need asks for
// all of it. Any other asks for half, but not for less than a quantum, so that rights do not move
// to and fro. jitter (parts per million, around PPM) keeps regions from moving in step.
func Move(short, quantum, jitter int64, inNeed bool) int64 {
	if inNeed || short <= 1 {
		return short
	}
	half := Part((short+1)/2, jitter)
	if half < quantum {
		half = min(quantum, short)
	}
	return min(half, short)
}

// Need is what a region knows of one bucket and cell when it works out how much to ask for.
// Amounts are units.
type Need struct {
	Frame
	Outlook   Outlook
	Opens     int64 // microseconds until the cell opens; 0: it is open
	Own       RegionPart
	Share     int64
	Target    int64 // see Scratch.Target; where requests wait it does not matter
	Waiting   int64 // units that requests wait for; 0: none waits
	InNeed    bool  // the region has denied requests lately
	Home      bool  // one region is entitled to all, and the others borrow unit by unit
	HomeWaits int64 // Home: see HomeWants
}

// Short returns how many units to ask for, and how many more of those that peers are thought to
// have to spare. Neither is more than the region may borrow.
//
// Where requests wait, it is what they lack. Else it is what is short of the target within the
// horizon; and of a kind whose cells stand apart, there is room for one standard deviation more of
// what is still to come (units come as in a Poisson process, so that is the square root of their
// number): else every other cell would be asked for twice. Where the target does not give all that
// is wanted, the room ends at the entitlement. A region that denies may ask for all it wants even
// then, of what peers still have: they may want less than they did.
//
// In home mode it is the next request alone: what one region takes beyond that, another lacks.
func (n *Need) Short() (short, room int64) {
	o := n.Outlook
	short = min(o.Used+n.Waiting, n.Own.Entitlement+n.Own.Borrowable) - n.Share
	if n.Waiting == 0 {
		short = max(short, Short(o, n.Opens, n.Target, n.Share))
		room = n.room(short)
	}
	if n.Home {
		return min(short, o.Used+n.HomeWaits-n.Share), 0
	}
	return short, max(room, 0)
}

// room is that of Short; it may be below 0.
func (n *Need) room(short int64) int64 {
	o := n.Outlook
	if !n.CellsApart {
		return 0
	}
	chance := root(short + o.Total() - o.Used)
	switch {
	case n.Target >= o.Total():
		return chance
	case n.InNeed:
		return Short(o, n.Opens, o.Total(), n.Share) - short
	}
	return min(chance, max(n.Own.Entitlement-n.Share-short, 0))
}

// WithRoom returns what to ask for where peers are thought to have so many units to spare: what is
// short, and of the room as much as they have beyond that.
func WithRoom(short, room, offered int64) int64 {
	return short + min(room, max(offered-short, 0))
}

// HomeWants returns what a region asks for at once in home mode, in units: what waiting requests
// lack, or one unit for the next request where one was denied lately.
func HomeWants(waiting int64, inNeed bool) int64 {
	if waiting == 0 && inNeed {
		return 1
	}
	return waiting
}

// AskAnew says whether a region asks again although an ask is under way, for pending units: where
// requests wait, or where it denies and lacks more than four times as much as it knew it lacked
// when it asked.
func AskAnew(short, pending, waiting int64, inNeed bool) bool {
	return waiting > 0 || inNeed && pending > 0 && short > 4*pending
}

// Tail returns how many units every peer is asked for that may have some, though it is not thought
// to: all that is asked for where a region denies and use does not fade, or the tail of the cell
// matters; else none.
func (f Frame) Tail(units int64, inNeed bool) int64 {
	if inNeed && (f.CellsApart || f.Long()) {
		return units
	}
	return 0
}

// EachOf returns the part of units that each of n peers is asked for when all are asked for the
// same, rounded up.
func EachOf(units int64, peers int) int64 {
	n := max(int64(peers), 1)
	return (units + n - 1) / n
}

// SplitAsk divides an ask of one peer into rights that it gives back and rights of its own that it
// lends. lent is what it has of ours, and may give back of this cell. Of its own the region may
// borrow so much more that all it has borrowed, and asked for, stays within borrowable; pending is
// the part of borrowed that was asked of this peer, and is asked for again.
func SplitAsk(units, lent, borrowable, borrowed, pending int64) (back, lend int64) {
	back = max(min(units, lent), 0)
	return back, min(units-back, max(borrowable-borrowed+pending, 0))
}

// ShortOfBurst returns how many tokens a region lacks until the cell ends, left microseconds from
// now, for then borrowed tokens go home: what its demand takes within the horizon beyond its
// refill and the tokens at hand, and at least what waiting requests lack. In home mode it is the
// next request alone.
func (n *Need) ShortOfBurst(left int64) int64 {
	tokens := n.Outlook.Stock
	lacking := max(Lacking(n.Outlook, min(Horizon, left), n.Share), n.Waiting-tokens)
	if n.Home {
		return min(lacking, n.HomeWaits-tokens)
	}
	return lacking
}
