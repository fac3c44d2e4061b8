package policy

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/quotad/quotad/quantity"
)

// Kept is what is left of documents that were folded, because so many are open: of each limit that
// they still bind, the least and the most that they give each region. Nobody writes it but quotad.
// It does not change once made.
type Kept struct {
	// Oldest and Through are the lowest and the highest version that is folded.
	Oldest, Through int64
	// Names holds the newest folded documents, at most MaxKeptNames.
	Names []Epoch
	// Before holds what was kept before and is a part of this, at most MaxKeptBefore.
	Before []Epoch
	// Pinned holds those of them that are open besides, because requests are still charged to limits
	// that a newer document does not have.
	Pinned []Epoch
	// Sets holds the sets of regions that folded documents have, each sorted. Of each a majority is
	// needed.
	Sets [][]string
	// Limits holds what is kept of each limit, by the ID of its buckets without the values of the
	// key. It is not empty.
	Limits map[BucketID][]Piece
}

// Piece is what folded documents give of one limit until one time.
type Piece struct {
	// Until is the store time from which on they bind no longer; 0: not before a newer document
	// counts alone.
	Until quantity.StoreTime `json:",omitempty"`
	// Regions holds the regions, sorted. Least and Most hold a part for each, for each rotation, or
	// for all rotations as one.
	Regions     []string
	Least, Most [][]Part
	// Limit and Largest are the least limit that the stores share, and the largest limit or burst.
	Limit, Largest quantity.Units
	Fill           int64 `json:",omitempty"` // the longest that a bucket takes to fill, µs
	Home           bool  `json:",omitempty"` // in all of the documents
	// Lending and Borrowing are the lowest limits of what is lent and borrowed.
	Lending, Borrowing PPM
	// Returned holds how often each region had returned, by the document that says least.
	Returned map[string]int64 `json:",omitempty"`
	// Added says that a document without the limit is among them.
	Added bool `json:",omitempty"`
}

// Part is what a region gets of one key: in its store, as its reserve, what of it it may lend, and
// the tokens that its Envoys may hold. Each is used by itself.
type Part struct{ Units, Burst, Reserve, ReserveBurst, Lendable, Envoys quantity.Units }

// The bounds of what is kept.
const (
	// MaxKeptNames is how many folded documents are known by name. One more is read again, and folded
	// again, if a region has it open.
	MaxKeptNames = 64
	// MaxKeptBefore is how much of what was kept before is known by name.
	MaxKeptBefore = 16
	// maxKeptPieces is how many pieces of a limit are read.
	maxKeptPieces = 16
	// maxKeptBytes bounds what is kept before it is compressed; its text is at most MaxDocumentBytes.
	maxKeptBytes = 32 << 20
	// KeptVersion is added to the highest folded version in the epoch of what is kept.
	KeptVersion = 1 << 52
)

const keptHeader = "# quotad keeps this of limits documents that are folded\n"

// ErrTooMuchKept says that what is to be kept does not fit into a document.
var ErrTooMuchKept = errors.New("too much to be kept")

// NewKept returns a document that keeps something, as other nodes read it by [ParseOpen].
func NewKept(k *Kept) (*Document, error) {
	var text bytes.Buffer
	text.WriteString(keptHeader)
	to := gzip.NewWriter(&text)
	if err := errors.Join(json.NewEncoder(to).Encode(k), to.Close()); err != nil {
		return nil, err
	}
	if text.Len() > MaxDocumentBytes {
		return nil, fmt.Errorf("%w: %d bytes", ErrTooMuchKept, text.Len())
	}
	return ParseOpen("what is kept", text.Bytes())
}

// ParseOpen parses what a node keeps or tells of open documents: a document, or what is kept of
// folded ones.
func ParseOpen(name string, source []byte) (_ *Document, err error) {
	defer survives(name, &err)
	body, kept := bytes.CutPrefix(source, []byte(keptHeader))
	if !kept {
		return Parse(name, source)
	}
	from, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	k := &Kept{}
	if err := json.NewDecoder(io.LimitReader(from, maxKeptBytes)).Decode(k); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := k.validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d := &Document{Version: KeptVersion + k.Through, Kept: k, source: bytes.Clone(source)}
	for _, set := range k.Sets {
		for _, region := range set {
			if !has(d.Regions, region) {
				d.Regions = append(d.Regions, Region{Name: region, Weight: 1})
			}
		}
	}
	slices.SortFunc(d.Regions, func(a, b Region) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	plain, err := json.Marshal(k) // of which the compressed text may differ
	d.epoch = Epoch{Version: d.Version, Digest: sha256.Sum256(plain)}
	return d, err
}

var errKept = errors.New("this is nothing that quotad keeps: run one version of quotad everywhere")

// validate fails if something of what is kept cannot be computed with.
func (k *Kept) validate() error {
	if k.Oldest < 1 || k.Oldest > k.Through || k.Through > MaxVersion || len(k.Names) > MaxKeptNames || len(k.Pinned) > MaxKeptNames || len(k.Before) > MaxKeptBefore ||
		len(k.Sets) == 0 || len(k.Sets) > MaxKeptNames || len(k.Limits) == 0 {
		return errKept
	}
	for _, set := range k.Sets {
		if len(set) == 0 || len(set) > MaxRegions {
			return errKept
		}
	}
	for id, pieces := range k.Limits {
		ref, err := ParseBucketID(id)
		if err != nil || len(pieces) == 0 || len(pieces) > maxKeptPieces {
			return errKept
		}
		if l, err := ref.Limit(); err != nil || l.Window < MinWindow || l.Window > MaxWindow {
			return errKept
		}
		if slices.ContainsFunc(pieces, func(p Piece) bool { return !p.valid() }) {
			return errKept
		}
	}
	return nil
}

func (p Piece) valid() bool {
	in := func(n quantity.Units) bool { return n >= 0 && n <= MaxLimit }
	for _, all := range [][][]Part{p.Least, p.Most} {
		if len(all) != 1 && len(all) != len(p.Regions) {
			return false
		}
		for _, parts := range all {
			if len(parts) != len(p.Regions) || slices.ContainsFunc(parts, func(one Part) bool {
				return !in(one.Units) || !in(one.Burst) || !in(one.Reserve) || !in(one.ReserveBurst) || !in(one.Lendable) || !in(one.Envoys)
			}) {
				return false
			}
		}
	}
	return len(p.Regions) > 0 && len(p.Regions) <= 2*MaxRegions && slices.IsSorted(p.Regions) && in(p.Limit) && p.Largest > 0 && in(p.Largest) &&
		p.Until >= 0 && p.Fill >= 0 && p.Lending >= 0 && p.Lending <= PPMOne
}

// Rotation returns the least and the most that the piece gives each of its regions, for keys of a
// hash.
func (p Piece) Rotation(hash uint64) (least, most []Part) {
	return p.Least[hash%uint64(len(p.Least))], p.Most[hash%uint64(len(p.Most))]
}

// Limit returns the limit of which buckets with an ID are, as far as the ID tells it.
func (r BucketRef) Limit() (*Limit, error) {
	l := &Limit{Domain: r.Domain, Name: r.Name, Algorithm: r.Algorithm, Window: r.Window, Period: r.Period, Match: r.Match}
	if r.Assigned {
		l.Assign = &Assign{}
	}
	for _, k := range r.Key {
		l.Key = append(l.Key, k.Name)
	}
	if r.Period != "" {
		c, err := r.Period.calendar()
		if err != nil {
			return nil, err
		}
		l.Window = usualLengths[c.Unit]
	}
	return l, nil
}
