package envoys

import (
	"slices"
	"time"

	"github.com/quotad/quotad/allocator/assign"
)

const (
	// NewIDs bounds the new bucket ids of all streams of a node that are taken in a second, and
	// NewIDsOfStream those of one stream. Each costs the store two calls. Further ones wait for
	// their turn; streams take turns.
	NewIDs, NewIDsOfStream = 5000, 2000
	// newEvery is how often new ids are taken.
	newEvery = 50 * time.Millisecond
	// While busyAt calls wait for the store, no new ids are taken.
	busyAt = 2000
)

// newcomers has the streams with bucket ids that the machine does not know yet, in the order of
// their turns. The assigner's lock guards it.
type newcomers struct {
	streams []*Stream
	waiting int           // ids of all streams
	taken   time.Duration // when ids were taken last, by the assigner's clock
	begun   bool          // some were
}

// add puts a bucket id behind the others of its stream.
func (n *newcomers) add(s *Stream, key string) {
	if len(s.fresh) == 0 {
		n.streams = append(n.streams, s)
	}
	s.fresh = append(s.fresh, key)
	n.waiting++
}

// leave drops what waits of a stream.
func (n *newcomers) leave(s *Stream) {
	n.waiting -= len(s.fresh)
	s.fresh = nil
	n.streams = slices.DeleteFunc(n.streams, func(one *Stream) bool { return one == s })
}

// takeNew gives the machine as many new bucket ids as are due. Streams take turns, and each gives
// at most its part. The caller holds the lock.
func (a *Assigner) takeNew() {
	n, at := &a.newcomers, a.config.Elapsed()
	if len(n.streams) == 0 || n.begun && at-n.taken < newEvery || a.mover.waits() >= busyAt {
		return
	}
	n.taken, n.begun = at, true
	const all, each = NewIDs * int(newEvery) / int(time.Second), NewIDsOfStream * int(newEvery) / int(time.Second)
	room := all
	for range len(n.streams) {
		if room == 0 {
			break
		}
		s := n.streams[0]
		n.streams = n.streams[1:]
		some := min(each, room, len(s.fresh))
		s.begin(s.fresh[:some])
		if s.fresh = s.fresh[some:]; len(s.fresh) > 0 {
			n.streams = append(n.streams, s)
		}
		room, n.waiting = room-some, n.waiting-some
	}
	a.counts.putOff.Add(float64(n.putOff()))
}

// putOff returns how many waiting ids have not been counted as put off.
func (n *newcomers) putOff() (count int) {
	for _, s := range n.streams {
		count += max(len(s.fresh)-s.putOff, 0)
		s.putOff = len(s.fresh)
	}
	return count
}

// begin gives the machine new bucket ids, except those that were abandoned meanwhile. Ids for which
// the machine has no room wait again; Report sees to it that there are none. The caller holds the
// lock.
func (s *Stream) begin(keys []string) {
	a := s.assigner
	var reports []assign.Report
	for _, key := range keys {
		if is := s.ids[key]; is != nil && is.first != nil {
			reports = append(reports, *is.first)
			is.first = nil
		}
	}
	full := a.machine.Reported(a.now(), s.number, reports)
	for _, r := range reports {
		if slices.Contains(full, r.Key) {
			s.ids[r.Key].first = &r
			s.fresh = append(s.fresh, r.Key)
			a.newcomers.waiting++
		}
	}
}
