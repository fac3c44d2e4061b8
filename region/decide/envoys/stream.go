package envoys

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotad/quotad/allocator/assign"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/repeat"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/memory/rules"
)

const (
	// MaxBuckets bounds the bucket ids of a stream. Further ones are abandoned.
	MaxBuckets = 1000
	// MaxIDBytes bounds the names and values of a bucket id. MaxAllIDBytes bounds those of all ids
	// of all streams of a node, including ids that Envoys wait to be told to forget. An id beyond
	// these bounds is abandoned. If there is no room for that either, the Envoy is told when it
	// reports the id again.
	MaxIDBytes, MaxAllIDBytes = 1 << 10, 16 << 20
	// sendWithin is how long an assignment may wait to be sent. An older one is not sent: the Envoy
	// would take it later than the machine counts on.
	sendWithin = 300 * time.Millisecond
	// maxWaiting bounds what waits to be sent on a stream, but for one assignment of each bucket
	// id.
	maxWaiting = 2 * MaxBuckets
)

// Usage is what an Envoy reports of one bucket id.
type Usage struct {
	ID              map[string]string
	Allowed, Denied uint64 // requests
	Elapsed         int64  // whole seconds since the Envoy's last report of the id, rounded down
}

// Assignment is what an Envoy is told of one bucket id: to admit Rate tokens a second, and Burst
// tokens at once, for TTL seconds. Abandon says instead to forget the id, because nothing is
// assigned to it.
type Assignment struct {
	ID               map[string]string
	Abandon          bool
	Rate, Burst, TTL int64
}

// Stream is the stream of one Envoy. Safe for concurrent use.
type Stream struct {
	assigner *Assigner
	number   assign.Stream
	domain   string
	more     chan struct{} // holds a value if something waits to be sent

	// The assigner's lock guards these.
	ids     map[string]*known // by key, which is all that is kept of an id
	fresh   []string          // keys of ids that the machine does not know yet, as they came
	putOff  int               // of them, those that were counted as put off
	waiting map[string]queued
	order   []string // of waiting, as they came
}

// known is a bucket id to which something is assigned, with the buckets that it is charged to under
// some rules. Most reports name an id that was reported before, under the same rules.
type known struct {
	key     string
	rules   *rules.Rules
	buckets []*assign.Bucket
	first   *assign.Report // that the machine gets when its turn has come; nil: it has it
}

// queued is something that waits to be sent.
type queued struct {
	send    assign.Send
	abandon bool          // the id; send has its key alone
	bytes   int           // of the id
	at      time.Duration // by the assigner's clock
}

// ErrTooMany says that a node has as many streams as it may.
var ErrTooMany = errors.New("the node has as many streams of Envoys as it may")

// ErrDraining says that the node ends.
var ErrDraining = errors.New("the node ends")

// Open begins the stream of an Envoy whose requests are of a domain.
func (a *Assigner) Open(domain string) (*Stream, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.drained:
		return nil, ErrDraining
	case len(a.streams) >= MaxStreams:
		a.counts.refused.Inc()
		return nil, fmt.Errorf("%w: %d", ErrTooMany, MaxStreams)
	}
	a.last++
	s := &Stream{assigner: a, number: a.last, domain: domain, more: make(chan struct{}, 1),
		ids: map[string]*known{}, waiting: map[string]queued{}}
	a.streams[s.number] = s
	return s, nil
}

// Close ends the stream.
func (s *Stream) Close() {
	a := s.assigner
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.streams[s.number] != s {
		return
	}
	delete(a.streams, s.number)
	a.machine.Ended(a.now(), s.number)
	a.newcomers.leave(s)
	for key := range s.ids {
		a.idBytes -= len(key)
	}
	for _, q := range s.waiting {
		a.idBytes -= q.bytes
	}
	clear(s.waiting)
	s.order = nil
}

// Report takes in what the Envoy reports. A stream that was closed takes in nothing.
func (s *Stream) Report(usages []Usage) {
	a := s.assigner
	a.counts.reports.Add(float64(len(usages)))
	read := make([]assign.Report, len(usages))
	reasons := make([]string, len(usages)) // why nothing is assigned
	var current *rules.Rules
	var left room
	for i, u := range usages {
		if reasons[i] = invalid; len(u.ID) == 0 {
			continue
		}
		if current == nil {
			current, left = a.config.Rules.Rules(), s.room()
		}
		read[i], reasons[i] = s.read(current, left, u)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.streams[s.number] != s {
		return
	}
	now := a.now()
	reports := make([]assign.Report, 0, min(len(usages), MaxBuckets))
	for i := range usages {
		key := read[i].Key
		is, again := s.ids[key]
		if reasons[i] == "" && !again && !s.left().has(key) {
			reasons[i] = noRoom
		}
		if reasons[i] != "" {
			s.abandon(now, key, reasons[i])
			continue
		}
		if !again {
			a.idBytes += len(key)
			is = &known{key: key, first: &assign.Report{Key: key}}
			s.ids[key] = is
			a.newcomers.add(s, key)
		}
		if is.rules != current {
			a.machine.Share(read[i].Buckets)
			is.rules, is.buckets = current, read[i].Buckets
		}
		if is.first == nil {
			reports = append(reports, read[i])
			continue
		}
		is.first.Buckets = read[i].Buckets
		is.first.Allowed = min(is.first.Allowed+read[i].Allowed, maxUnits)
		is.first.Denied = min(is.first.Denied+read[i].Denied, maxUnits)
	}
	a.machine.Reported(now, s.number, reports) // it has room for what it knows
	if len(s.fresh) > 0 {
		a.soon()
	}
}

// room is how many further bucket ids a stream may have, and how many bytes their keys.
type room struct{ ids, bytes int }

// has reports whether there is room for one more bucket id.
func (r room) has(key string) bool { return r.ids > 0 && len(key) <= r.bytes }

// room returns the room that there is now.
func (s *Stream) room() room {
	s.assigner.mu.Lock()
	defer s.assigner.mu.Unlock()
	return s.left()
}

// left is room for a caller that holds the lock.
func (s *Stream) left() room {
	a := s.assigner
	return room{min(MaxBuckets-len(s.ids), 2*MaxBuckets-len(s.fresh),
		assign.MaxShares-a.machine.Shares()-a.newcomers.waiting), MaxAllIDBytes - a.idBytes}
}

// abandon makes the Envoy forget a bucket id. An Envoy takes no answer about an empty id, and an
// Envoy that reads no answers asks again. The caller holds the lock.
func (s *Stream) abandon(now quantity.NodeTime, key, why string) {
	s.assigner.counts.abandoned.WithLabelValues(why).Inc()
	s.assigner.machine.Left(now, s.number, key)
	if _, is := s.ids[key]; is {
		s.assigner.idBytes -= len(key)
		delete(s.ids, key)
	}
	before, waits := s.waiting[key]
	if key == "" || !waits && len(s.waiting) >= maxWaiting ||
		s.assigner.idBytes-before.bytes+len(key) > MaxAllIDBytes {
		return
	}
	s.wait(queued{abandon: true, bytes: len(key), send: assign.Send{Key: key}, at: s.assigner.config.Elapsed()})
}

// Why a bucket id is abandoned.
const (
	invalid      = "invalid"      // no request could have these descriptors, there are none, or they are too large
	noLimit      = "no_limit"     // no limit applies
	unassignable = "unassignable" // a limit applies of which nothing is assigned
	noRoom       = "no_room"      // of a bound
)

// read returns what a usage means by the rules, or why nothing is assigned to its bucket id. The
// node keeps nothing of a new id for which there is no room: it does not match the id, and if there
// is no room to abandon it either, the result has no key.
func (s *Stream) read(current *rules.Rules, left room, u Usage) (r assign.Report, why string) {
	var memory [MaxIDBytes]byte
	key := appendKey(memory[:0], u.ID)
	r = assign.Report{Allowed: units(u.Allowed), Denied: units(u.Denied), Elapsed: u.Elapsed}
	before, again := s.find(key)
	switch {
	case again:
		r.Key = before.key
	case len(key) > left.bytes:
		return r, noRoom
	default:
		r.Key = string(key)
	}
	if again && before.rules == current {
		r.Buckets = before.buckets
		return r, ""
	}
	q := admit.Request{Domain: s.domain, Descriptors: u.ID, Cost: 1}
	switch {
	case len(key) > MaxIDBytes || q.Validate() != nil:
		return r, invalid
	case !again && left.ids <= 0:
		return r, noRoom
	}
	applied := current.Match(s.domain, u.ID)
	if len(applied) == 0 {
		return r, noLimit
	}
	for _, a := range applied {
		if a.Limit.Assign == nil {
			return r, unassignable
		}
		r.Buckets = append(r.Buckets, bucketOf(a))
	}
	return r, ""
}

// find returns what is known of a bucket id.
func (s *Stream) find(key []byte) (k known, is bool) {
	s.assigner.mu.Lock()
	defer s.assigner.mu.Unlock()
	if found := s.ids[string(key)]; found != nil {
		return *found, true
	}
	return k, false
}

// units converts a count of requests.
func units(n uint64) quantity.Units { return quantity.Units(min(n, maxUnits)) }

const maxUnits = 1 << 51

// appendKey appends the key of a bucket id: a text that differs for different ids.
func appendKey(key []byte, id map[string]string) []byte {
	var few [8]string
	names := few[:0]
	for name := range id {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, text := range []string{name, id[name]} {
			key = append(strconv.AppendInt(key, int64(len(text)), 10), ':')
			key = append(key, text...)
		}
	}
	return key
}

// idOf returns the bucket id of a key that appendKey made.
func idOf(key string) map[string]string {
	id := map[string]string{}
	next := func() (text string) {
		length, rest, _ := strings.Cut(key, ":")
		n, _ := strconv.Atoi(length) // appendKey wrote it
		text, key = rest[:n], rest[n:]
		return text
	}
	for key != "" {
		name := next()
		id[name] = next()
	}
	return id
}

// queue puts an assignment behind what waits to be sent. The caller holds the lock.
func (s *Stream) queue(one assign.Send) {
	s.wait(queued{send: one, at: s.assigner.config.Elapsed()})
}

// wait puts something behind what waits to be sent. It replaces what waits for the same bucket id.
// The caller holds the lock.
func (s *Stream) wait(q queued) {
	before, waits := s.waiting[q.send.Key]
	if !waits {
		s.order = append(s.order, q.send.Key)
	}
	s.assigner.idBytes += q.bytes - before.bytes
	s.waiting[q.send.Key] = q
	repeat.Signal(s.more)
}

// Next waits for assignments to send, at most maxTogether, and returns them. It fails when ctx
// ends.
func (s *Stream) Next(ctx context.Context) ([]Assignment, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.more:
			if all := s.Take(); len(all) > 0 {
				return all, nil
			}
		}
	}
}

// maxTogether bounds the assignments of one message, and maxTogetherBytes their ids; a first id may
// be larger. So a stream whose Envoy does not read holds a message or two.
const maxTogether, maxTogetherBytes = 500, 32 << 10

// Take returns what is to be sent now, in one message.
func (s *Stream) Take() (all []Assignment) {
	a := s.assigner
	now := a.config.Elapsed()
	a.mu.Lock()
	defer a.mu.Unlock()
	n, bytes := 0, 0
	for _, key := range s.order[:min(len(s.order), maxTogether)] {
		if bytes += len(key); bytes > maxTogetherBytes && n > 0 {
			break
		}
		n++
		q := s.waiting[key]
		delete(s.waiting, key)
		a.idBytes -= q.bytes
		switch {
		case q.abandon:
			all = append(all, Assignment{ID: idOf(key), Abandon: true})
		case now-q.at > sendWithin:
			a.counts.late.Inc()
			a.machine.Unsent(a.now(), s.number, key)
			a.soon()
		case s.ids[key] != nil:
			a.machine.Sent(a.now(), s.number, key)
			all = append(all, Assignment{ID: idOf(key), Rate: q.send.Rate,
				Burst: int64(q.send.Burst), TTL: q.send.TTL})
		}
	}
	if s.order = slices.Delete(s.order, 0, n); len(s.order) > 0 {
		repeat.Signal(s.more)
	}
	return all
}
