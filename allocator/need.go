package allocator

// Horizon is how far ahead of its use a region gathers rights, in microseconds: little and often, so that what it
// turns out not to need was not taken from another.
const Horizon = 3 * Second

// Short returns how many units a region lacks: up to its target, what it needs within the horizon, less its share.
// opens is the time until the cell opens (0: it is open).
func Short(o Outlook, opens, target, share int64) int64 {
	return max(min(target, o.Until(max(Horizon-opens, 0)))-share, 0)
}

// Quantum is the smallest voluntary move, in units: a five-hundredth of the limit.
func Quantum(limit int64) int64 { return max(limit/500, 1) }

// Move returns how much of a shortage to ask for at one tick. A region in need asks for all of it; any other closes
// half the gap, jittered (ppm, around PPM) so that regions do not move in step, and not less than a quantum.
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
