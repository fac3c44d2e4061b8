package allocator

import "github.com/quotad/quotad/quantity"

// Outlook is what a region expects of one cell. Its units are those that count against the region's
// rights of the cell. Where rights are a rate (Steady), they are units in a window, and the outlook
// is the same at any moment.
type Outlook struct {
	// units that count now; before the cell opens, those that will count when it opens
	Used   quantity.Units
	Fading quantity.Units     // the part of Used that no longer counts when the cell ends
	Rate   quantity.MilliRate // demand, milliunits per second
	// Ahead is the microseconds until the cell ends, or its whole length before it opens. Steady:
	// the window.
	Ahead  int64
	Steady bool           // rights are a rate
	Stock  quantity.Units // Steady: the units at hand
	// Capped is the demand of classes that may use only a part of the rights, milliunits per second,
	// beside Rate; Room is what is left of that part. Of kinds whose cells stand apart.
	Capped quantity.MilliRate
	Room   quantity.Units
}

// Total returns the most units that will count at any time until the end of the cell.
func (o Outlook) Total() quantity.Units { return o.Until(o.Ahead) }

// Until returns the most units that will count at any time in the next t microseconds, but not
// after the end of the cell.
func (o Outlook) Until(t int64) quantity.Units {
	if t = min(t, o.Ahead); o.Steady {
		t = o.Ahead
	}
	if t <= 0 {
		return o.Used
	}
	faded, _ := mulDiv(o.Fading, t, o.Ahead)
	return o.Used + max(Over(o.Rate, t)-faded, 0) + max(min(Over(o.Capped, t), o.Room), 0)
}

// Exhausted reports whether a share will be used up within t microseconds at this demand. A steady
// share is used up when the units at hand are.
func Exhausted(o Outlook, t int64, share quantity.Units) bool {
	if o.Steady {
		return Lacking(o, t, share) > 0
	}
	return o.Until(t) > share
}

// RunsOut reports whether a region will deny soon: its share will be used up within two round trips to
// the farthest peer. In that time it can ask twice.
func RunsOut(o Outlook, roundTrip int64, share quantity.Units) bool {
	return Exhausted(o, 2*roundTrip, share)
}

// Lacking returns how many units a steady share and the units at hand fall short of the demand
// within t microseconds. A result below 0 means that nothing is lacking.
func Lacking(o Outlook, t int64, share quantity.Units) quantity.Units {
	return Over(o.Rate-PerSecond(max(share, 0), o.Ahead), t) - o.Stock
}

// FadesIn returns the time, in microseconds, until a region may have the given number of units more
// to spare: until that many more units have faded than come in. It returns most if that takes
// longer.
func FadesIn(o Outlook, units quantity.Units, most int64) int64 {
	growth := PerSecond(o.Fading, o.Ahead) - o.Rate
	if growth <= 0 {
		return most
	}
	t, _ := mulDiv(int64(units), 1000*Second, int64(growth))
	return min(t, most)
}
