package journal

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal/disk"
)

// saved is what the journal keeps beside rows and checkpoints, as it is on the disk. setting is
// locked across a commit, so that two setters reach the disk and the memory in the same order. mu
// is locked only for a moment, so that readers never wait for the disk.
type saved struct {
	setting sync.Mutex

	mu sync.Mutex
	noted
}

// noted holds the notes that change while the journal is open, except totals.
type noted struct {
	generation uint64
	wholeSince quantity.StoreTime
	storeTime  storeTime
	peers      []string
	documents  documents
	names      map[string]Name // of nodes that used the store
	seals      []Seal
}

// now returns what is saved at present.
func (s *saved) now() noted {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.noted
}

// showStoreTime lets readers see what a commit has made durable. Only one commit runs at a time.
func (s *saved) showStoreTime(t storeTime) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.storeTime = t
}

// Incarnation numbers the openings of this file: 1 for a journal just made.
func (j *Journal) Incarnation() uint64 { return j.incarnation }

// Sequence numbers the commits since the file was made. It never goes back,
// unless an older copy of the file was put in its place.
func (j *Journal) Sequence() uint64 { return j.Stats().Sequence }

// Found returns the sequence number that the file had when it was opened. Opening it, and what is
// written at a start, raise the number: an older copy may have as many commits by then.
func (j *Journal) Found() uint64 { return j.found }

// Generation returns the store generation that this region last opened, 0 at first.
func (j *Journal) Generation() uint64 { return j.saved.now().generation }

// SetGeneration durably records the generation of the store. It fails with ErrGeneration, changing
// nothing, if g is lower than what is kept.
func (j *Journal) SetGeneration(g uint64) error {
	j.saved.setting.Lock()
	defer j.saved.setting.Unlock()
	kept := j.Generation()
	if err := validateGeneration(kept, g); err != nil {
		return err
	}
	return j.save(g == kept, disk.State, noteGeneration, encodeNumber(g),
		func() { j.saved.generation = g })
}

// WholeSince returns a time after which every row that this node announced is in this journal, in
// microseconds of store time since 1970. 0 means that all rows are. math.MaxInt64, as in a new
// journal, means that no such time is known.
func (j *Journal) WholeSince() quantity.StoreTime { return j.saved.now().wholeSince }

// SetWholeSince durably replaces what WholeSince returns, by an earlier or a later time. The
// journal never does so by itself: only the region can tell what was announced. A negative time is
// ErrInvalid and changes nothing.
func (j *Journal) SetWholeSince(t quantity.StoreTime) error {
	if err := validateWholeSince(t); err != nil {
		return err
	}
	j.saved.setting.Lock()
	defer j.saved.setting.Unlock()
	return j.save(t == j.WholeSince(), disk.State, noteWholeSince, encodeTime(t),
		func() { j.saved.wholeSince = t })
}

// Peers returns the addresses last remembered, in their order.
func (j *Journal) Peers() []string { return slices.Clone(j.saved.now().peers) }

// RememberPeers replaces the remembered addresses durably: at most MaxAddresses
// of 1 to MaxAddressBytes bytes, else ErrInvalid and nothing changes.
func (j *Journal) RememberPeers(addresses []string) error {
	if err := validateAddresses(addresses); err != nil {
		return err
	}
	j.saved.setting.Lock()
	defer j.saved.setting.Unlock()
	addresses = slices.Clone(addresses)
	return j.save(slices.Equal(addresses, j.Peers()), disk.Saved, notePeers, encodePeers(addresses),
		func() { j.saved.peers = addresses })
}

// Documents returns the limits documents last saved, in their order; none at first.
func (j *Journal) Documents() []Document { return copies(j.saved.now().documents) }

// SaveDocuments replaces the open limits documents durably. The journal does not look into them,
// nor compare versions. More than MaxDocuments, or a source of more than MaxPolicyBytes, is
// ErrInvalid.
func (j *Journal) SaveDocuments(all []Document) error {
	if err := validateDocuments(all); err != nil {
		return err
	}
	j.saved.setting.Lock()
	defer j.saved.setting.Unlock()
	next := documents(copies(all))
	same := slices.EqualFunc(j.saved.now().documents, next, func(a, b Document) bool {
		return a.Version == b.Version && bytes.Equal(a.Source, b.Source)
	})
	return j.save(same, disk.Saved, notePolicy, next.encode(),
		func() { j.saved.documents = next })
}

func copies(all []Document) []Document {
	all = slices.Clone(all)
	for i := range all {
		all[i].Source = bytes.Clone(all[i].Source)
	}
	return all
}

// save commits a note and then lets readers see it; a note that is the same
// already costs no commit. The caller has locked saved.setting.
func (j *Journal) save(same bool, part disk.Part, key, body []byte, show func()) error {
	if err := j.usable(); err != nil || same {
		return err
	}
	err := j.submit(context.Background(), 1, func(t *transaction) error {
		t.note(part, key, body)
		return nil
	})
	if err != nil {
		return err
	}
	j.saved.mu.Lock()
	defer j.saved.mu.Unlock()
	show()
	return nil
}
