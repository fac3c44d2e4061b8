package allocator

import "github.com/quotad/quotad/quantity"

// Horizon is how far ahead of its use a region asks for rights, in microseconds. It asks for little
// and often, so that it rarely takes from others what it turns out not to need.
const Horizon = 3 * Second

// Short returns how many units a region lacks: what it will need within the horizon, at most its
// target, less its share. opens is the time until the cell opens, in microseconds (0: it is open).
func Short(o Outlook, opens int64, target, share quantity.Units) quantity.Units {
	return max(min(target, o.Until(max(Horizon-opens, 0)))-share, 0)
}

// Quantum returns the smallest voluntary move, in units: a five-hundredth of the limit, at least 1.
func Quantum(limit quantity.Units) quantity.Units { return max(limit/500, 1) }

// Move returns how many units of a shortage to ask for at one tick. A region in need asks for all
// of it. Any other region asks for half, but for no less than a quantum, so that rights do not move
// to and fro. jitter (parts per million, around PPM) keeps regions from moving in step.
func Move(short, quantum quantity.Units, jitter quantity.PPM, inNeed bool) quantity.Units {
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
	Share     quantity.Units
	Target    quantity.Units // see Scratch.Target; not used while requests wait
	Waiting   quantity.Units // units that requests wait for; 0: none waits
	Large     quantity.Units // a large cost that is wanted whole; 0: none
	Spread    int64          // of the costs: see Demand.Spread
	Slack     quantity.Units // this region's equal part of what all regions are known to leave
	InNeed    bool           // the region has denied requests lately
	Home      bool           // one region is entitled to all, and the others borrow unit by unit
	HomeWaits quantity.Units // with Home: see HomeWants
}

// Short returns how many units to ask for (short), and how many more to ask for if peers are
// thought to have them to spare (room). short is never more than the region may borrow. room may
// be; SplitAsk cuts it.
//
// Short is what a large cost lacks at least. While requests wait, it is what they lack, and there
// is no room. Otherwise short is what is short of the target within the horizon, and a kind whose
// cells stand apart has room. The room is one standard deviation of what is still to come, as in
// Frame.Margin; beyond the square root of its units at most Slack. Without room, every other cell
// would need a second ask. If the target is less than what the region wants, the room ends at the
// entitlement. A region in need may even then ask for all it wants, because peers may want less
// than they did.
//
// In home mode short covers only the next request: what one region takes beyond that, another
// lacks.
func (n *Need) Short() (short, room quantity.Units) {
	o := n.Outlook
	short = min(o.Used+max(n.Waiting, n.Large), n.Own.Entitlement+n.Own.Borrowable) - n.Share
	if n.Waiting == 0 {
		short = max(short, Short(o, n.Opens, n.Target, n.Share))
		room = n.room(short)
	}
	if n.Home {
		return min(short, o.Used+n.HomeWaits-n.Share), 0
	}
	return short, max(room, 0)
}

// room returns the room of Short; it may be negative.
func (n *Need) room(short quantity.Units) quantity.Units {
	o := n.Outlook
	if !n.CellsApart {
		return 0
	}
	chance := deviation(short+o.Total()-o.Used, n.Spread, n.Slack)
	switch {
	case n.Target >= o.Total():
		return chance
	case n.InNeed:
		return Short(o, n.Opens, o.Total(), n.Share) - short
	}
	return min(chance, max(n.Own.Entitlement-n.Share-short, 0))
}

// WithRoom returns how many units to ask for if peers are thought to have offered units to spare:
// what is short, and as much of the room as they have beyond that.
func WithRoom(short, room, offered quantity.Units) quantity.Units {
	return short + min(room, max(offered-short, 0))
}

// HomeWants returns what a region asks for at once in home mode, in units: what waiting requests
// lack, or one unit for the next request where one was denied lately.
func HomeWants(waiting quantity.Units, inNeed bool) quantity.Units {
	if waiting == 0 && inNeed {
		return 1
	}
	return waiting
}

// AskAnew reports whether a region asks again although an ask for pending units is under way: it
// does if requests wait, or if it denies and lacks more than four times as much as it asked for.
func AskAnew(short, pending, waiting quantity.Units, inNeed bool) bool {
	return waiting > 0 || inNeed && pending > 0 && short > 4*pending
}

// Tail returns how many units to ask of every peer that may have some although it is not thought
// to. That is all of units if a region denies and its cells stand apart or have a tail that
// matters; otherwise 0.
func (f Frame) Tail(units quantity.Units, inNeed bool) quantity.Units {
	if inNeed && (f.CellsApart || f.Long()) {
		return units
	}
	return 0
}

// EachOf returns units divided by the number of peers, rounded up. It is used when all peers are
// asked for the same amount.
func EachOf(units quantity.Units, peers int) quantity.Units {
	n := quantity.Units(max(int64(peers), 1))
	return (units + n - 1) / n
}

// SplitAsk divides an ask of one peer into rights that the peer gives back and rights of its own
// that it lends. lent is what the peer has borrowed from this region and may give back of this
// cell. borrowable bounds all that this region has borrowed and asked for. pending is the part of
// borrowed that was already asked of this peer, which this ask replaces.
func SplitAsk(units, lent, borrowable, borrowed, pending quantity.Units) (back,
	lend quantity.Units) {
	back = max(min(units, lent), 0)
	return back, min(units-back, max(borrowable-borrowed+pending, 0))
}

// ShortOfBurst returns how many tokens a region lacks until the cell ends in left microseconds;
// borrowed tokens go back then. That is what its demand takes within the horizon beyond its refill
// and the tokens at hand, and at least what waiting requests lack. In home mode it covers only the
// next request.
func (n *Need) ShortOfBurst(left int64) quantity.Units {
	tokens := n.Outlook.Stock
	lacking := max(Lacking(n.Outlook, min(Horizon, left), n.Share), n.Waiting-tokens)
	if n.Home {
		return min(lacking, n.HomeWaits-tokens)
	}
	return lacking
}
