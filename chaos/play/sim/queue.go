package sim

// occurrence is a function to run at a time.
type occurrence struct {
	at  int64 // µs since the start
	seq int   // of two occurrences at the same time, the one with the lower seq runs first
	do  func()
}

func (o occurrence) before(other occurrence) bool {
	return o.at < other.at || o.at == other.at && o.seq < other.seq
}

// agenda holds the occurrences to come, as a heap with the earliest first. It does not use
// container/heap because that is slower: half a million occurrences a second go through it.
type agenda struct {
	all  []occurrence
	last int
}

// put schedules a function.
func (a *agenda) put(at int64, do func()) {
	a.last++
	o := occurrence{at, a.last, do}
	a.all = append(a.all, o)
	i := len(a.all) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !o.before(a.all[parent]) {
			break
		}
		a.all[i] = a.all[parent]
		i = parent
	}
	a.all[i] = o
}

// next removes and returns the earliest occurrence, if it is not after until.
func (a *agenda) next(until int64) (occurrence, bool) {
	if len(a.all) == 0 || a.all[0].at > until {
		return occurrence{}, false
	}
	first, last := a.all[0], len(a.all)-1
	o := a.all[last]
	a.all[last] = occurrence{}
	a.all = a.all[:last]
	if last > 0 {
		a.sink(o)
	}
	return first, true
}

// sink puts an occurrence in its place in the heap, beginning at the top.
func (a *agenda) sink(o occurrence) {
	i := 0
	for {
		child := 2*i + 1
		if child >= len(a.all) {
			break
		}
		if right := child + 1; right < len(a.all) && a.all[right].before(a.all[child]) {
			child = right
		}
		if !a.all[child].before(o) {
			break
		}
		a.all[i] = a.all[child]
		i = child
	}
	a.all[i] = o
}
