package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"testing"

	bolt "go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// subject is a journal under test, on one kind of disk, with the means to make it fail.
type subject interface {
	journal() *Journal
	crash()         // end it at once and open what was durable
	reopen() error  // close it and open it again
	failNext(error) // the next commit fails and writes nothing
}

func TestConformance(t *testing.T) {
	t.Run("file", func(t *testing.T) {
		dir, n := t.TempDir(), 0
		suite.Check(t, func(rt *rapid.T) {
			n++
			s := &fileSubject{t: t, prefix: filepath.Join(dir, fmt.Sprint(n))}
			placeEmpty(t, s.path())
			s.open()
			defer func() { s.j.Close() }()
			conform(rt, s)
		})
	})
	t.Run("memory", func(t *testing.T) {
		suite.Check(t, func(rt *rapid.T) { conform(rt, newMemorySubject(rt)) })
	})
}

type memorySubject struct {
	t    needs
	disk *lab.Disk
	j    *Journal
}

func newMemorySubject(t needs) *memorySubject {
	d := lab.NewDisk()
	return &memorySubject{t, d, newDirect(t, d)}
}

func (s *memorySubject) journal() *Journal  { return s.j }
func (s *memorySubject) failNext(err error) { s.disk.FailCommits(err) }

// crash abandons the handle before calling open, like a killed process.
func (s *memorySubject) crash() {
	s.disk = s.disk.Copy()
	s.disk.FailCommits(nil)
	s.j = openDirect(s.t, s.disk)
}

func (s *memorySubject) reopen() error {
	err := s.j.Close()
	s.j = openDirect(s.t, s.disk)
	return err
}

// fileSubject crashes by copying the file between two commits.
type fileSubject struct {
	t      *testing.T
	prefix string
	copies int
	j      *Journal
	next   error
}

func (s *fileSubject) path() string { return fmt.Sprintf("%s-%d.db", s.prefix, s.copies) }

func (s *fileSubject) open() {
	opts := us1
	opts.commit = func(tx *bolt.Tx) error {
		if s.next != nil {
			return s.next
		}
		return commitUnsynced(tx)
	}
	s.next = nil
	s.j = mustOpen(s.t, s.path(), opts)
}

func (s *fileSubject) journal() *Journal  { return s.j }
func (s *fileSubject) failNext(err error) { s.next = err }

func (s *fileSubject) crash() {
	image, old := mustRead(s.t, s.path()), s.j
	s.copies++
	mustWrite(s.t, s.path(), image)
	s.open()
	old.Close()
}

func (s *fileSubject) reopen() error {
	err := s.j.Close()
	s.open()
	return err
}

// twin is what a journal should hold, kept as simply as possible.
type twin struct {
	rows        map[rowID]Row
	checkpoints map[checkpointID]Checkpoint
	wholeSince  quantity.StoreTime
	seen        []quantity.StoreTime
	latest      quantity.StoreTime
	generation  uint64
	incarnation uint64
	sequence    uint64 // a lower bound
	peers       []string
	names       map[string]Name
	seals       map[uint64]string // all that were ever kept
	documents   []Document
}

func (w *twin) record(rows []Row) {
	for _, r := range rows {
		old := w.rows[r.id()]
		if _, ok := w.rows[r.id()]; !ok {
			old.Until = math.MinInt64
		}
		r.Lent, r.Returned, r.Burst = max(r.Lent, old.Lent), max(r.Returned, old.Returned),
			max(r.Burst, old.Burst)
		r.Generation, r.Until = max(r.Generation, old.Generation), max(r.Until, old.Until)
		w.rows[r.id()] = r
	}
}

var (
	someBuckets = []string{"a", "a\x00", "\x00", "ab",
		string(bytes.Repeat([]byte("x"), MaxBucketBytes))}
	drawBucket     = rapid.SampledFrom(someBuckets)
	drawCell       = rapid.SampledFrom([]int64{math.MinInt64, -1, 0, 1, math.MaxInt64})
	drawGeneration = rapid.OneOf(rapid.Uint64Range(0, 3), rapid.Just(uint64(math.MaxUint64)))

	drawUnits = rapid.OneOf(rapid.Int64Range(0, 9), rapid.Just(int64(MaxUnits)))
	drawUntil = rapid.OneOf(rapid.Int64Range(0, 20), rapid.Int64Range(-3, 3),
		rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64}))
	drawRow = rapid.Custom(func(t *rapid.T) Row {
		return Row{
			Bucket:     drawBucket.Draw(t, "bucket"),
			Peer:       rapid.SampledFrom([]string{"b", "eu", "\x00b"}).Draw(t, "peer"),
			Cell:       quantity.Cell(drawCell.Draw(t, "cell")),
			Lent:       quantity.Units(drawUnits.Draw(t, "lent")),
			Returned:   quantity.Units(drawUnits.Draw(t, "returned")),
			Burst:      quantity.Units(drawUnits.Draw(t, "burst")),
			Generation: drawGeneration.Draw(t, "generation"),
			Until:      quantity.StoreTime(drawUntil.Draw(t, "until")),
		}
	})
	errDisk = errors.New("no space left on the disk")
)

// conform runs a subject against a twin by random steps.
func conform(t *rapid.T, s subject) {
	ctx := context.Background()
	w := &twin{rows: make(map[rowID]Row), checkpoints: make(map[checkpointID]Checkpoint),
		wholeSince: math.MaxInt64, incarnation: 1, seen: []quantity.StoreTime{0}}
	check := func(err error) {
		t.Helper()
		suite.Must(t, err)
	}
	steps := map[string]func(*rapid.T){
		"record": func(t *rapid.T) {
			rows := rapid.SliceOfN(drawRow, 0, 5).Draw(t, "rows")
			seen := drawSeen.Draw(t, "seen")
			check(s.journal().Record(ctx, rows, seen...))
			before := maps.Clone(w.rows)
			w.record(rows)
			if !maps.Equal(w.rows, before) {
				w.show(seen)
			}
		},
		"record again": func(t *rapid.T) {
			before := s.journal().Sequence()
			check(s.journal().Record(ctx, slices.Collect(maps.Values(w.rows))))
			if after := s.journal().Sequence(); after != before {
				t.Fatalf("recording durable rows raised the sequence from %d to %d", before, after)
			}
		},
		"record cancelled": func(t *rapid.T) {
			cancelled, cancel := context.WithCancel(ctx)
			cancel()
			if err := s.journal().Record(cancelled,
				[]Row{drawRow.Draw(t, "row")}); err != context.Canceled {
				t.Fatalf("Record with a cancelled context = %v", err)
			}
		},
		"record invalid": func(t *rapid.T) {
			bad := drawRow.Draw(t, "row")
			*rapid.SampledFrom([]*quantity.Units{&bad.Lent, &bad.Returned, &bad.Burst}).Draw(t,
				"field") = rapid.SampledFrom([]quantity.Units{-1, MaxUnits + 1}).Draw(t, "value")
			if err := s.journal().Record(ctx, []Row{drawRow.Draw(t, "row"), bad}); !errors.Is(err,
				ErrInvalid) {
				t.Fatalf("Record of an invalid row = %v", err)
			}
		},
		"prune":      func(t *rapid.T) { w.pruneAll(t, s.journal()) },
		"prune some": func(t *rapid.T) { w.pruneSome(t, s.journal()) },
		"generation": func(t *rapid.T) {
			g := rapid.Uint64Range(0, 20).Draw(t, "g")
			err := s.journal().SetGeneration(g)
			if g < w.generation != errors.Is(err, ErrGeneration) ||
				(g >= w.generation && err != nil) {
				t.Fatalf("SetGeneration(%d) after %d = %v", g, w.generation, err)
			}
			w.generation = max(w.generation, g)
		},
		"names": func(t *rapid.T) {
			w.names = rapid.MapOfN(rapid.StringN(1, 9, -1), rapid.Map(rapid.Int64(), func(at int64) Name {
				return Name{Last: quantity.StoreTime(at), First: quantity.StoreTime(at / 5), Since: quantity.StoreTime(at / 3), Read: quantity.StoreTime(at % 7)}
			}), 0, 4).Draw(t, "names")
			check(s.journal().RememberNames(w.names))
			if err := s.journal().RememberNames(map[string]Name{"": {}}); !errors.Is(err, ErrInvalid) {
				t.Fatalf("RememberNames of an empty one = %v", err)
			}
		},
		"seals": func(t *rapid.T) {
			one := Seal{rapid.Uint64Range(0, 40).Draw(t, "generation"), rapid.StringN(1, 9, -1).Draw(t, "secret")}
			check(s.journal().KeepSeal(one))
			if w.seals == nil {
				w.seals = map[uint64]string{}
			}
			w.seals[one.Generation] = one.Secret
			if latest := slices.Sorted(maps.Keys(w.seals)); len(latest) > MaxSeals {
				delete(w.seals, latest[0])
			}
			if err := s.journal().KeepSeal(Seal{Generation: 1}); !errors.Is(err, ErrInvalid) {
				t.Fatalf("KeepSeal without a secret = %v", err)
			}
		},
		"peers": func(t *rapid.T) {
			w.peers = rapid.SliceOfN(rapid.StringN(1, 9, -1), 0, 4).Draw(t, "peers")
			check(s.journal().RememberPeers(w.peers))
		},
		"policy": func(t *rapid.T) {
			w.documents = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Document {
				return Document{rapid.Int64().Draw(t, "version"), rapid.SliceOfN(rapid.Byte(), 0,
					9000).Draw(t, "source")}
			}), 0, 3).Draw(t, "documents")
			check(s.journal().SaveDocuments(w.documents))
		},
		"crash":  func(t *rapid.T) { s.crash(); w.incarnation++ },
		"reopen": func(t *rapid.T) { check(s.reopen()); w.incarnation++ },
		"close": func(t *rapid.T) {
			check(s.journal().Close())
			refuses(t, s.journal(), ErrClosed)
			check(s.reopen())
			w.incarnation++
		},
		"fail": func(t *rapid.T) {
			s.failNext(errDisk)
			fresh := Row{Bucket: "never seen", Peer: "eu"}
			if err := s.journal().Record(ctx, []Row{fresh}); !errors.Is(err, ErrFailed) ||
				!errors.Is(err, errDisk) {
				t.Fatalf("Record on a failing disk = %v", err)
			}
			s.failNext(nil)
			refuses(t, s.journal(), errDisk)
			if !s.journal().Stats().Failed {
				t.Fatal("Stats does not say that the journal failed")
			}
			s.crash()
			w.incarnation++
		},
		"": func(t *rapid.T) { w.compare(t, s.journal()) },
	}
	maps.Copy(steps, w.recoverySteps(s))
	t.Repeat(steps)
}

// refuses fails the test unless every call that needs the disk ends in want.
func refuses(t *rapid.T, j *Journal, want error) {
	t.Helper()
	_, _, prune := j.Prune(math.MinInt64)
	var rows error
	for _, err := range j.Rows() {
		rows = err
	}
	_, rowsOf := j.RowsOf("a", 0, 0)
	_, checkpoints := j.Checkpoints("a")
	for call, err := range map[string]error{
		"Record":        j.Record(context.Background(), nil),
		"Checkpoint":    j.Checkpoint(context.Background(), nil),
		"Prune":         prune,
		"Rows":          rows,
		"RowsOf":        rowsOf,
		"Checkpoints":   checkpoints,
		"SetGeneration": j.SetGeneration(j.Generation()),
		"SetWholeSince": j.SetWholeSince(j.WholeSince()),
		"RememberPeers": j.RememberPeers(j.Peers()),
		"SaveDocuments": j.SaveDocuments(j.Documents()),
	} {
		if !errors.Is(err, want) {
			t.Fatalf("%s = %v, want %v", call, err, want)
		}
	}
}

func sameDocument(a, b Document) bool {
	return a.Version == b.Version && bytes.Equal(a.Source, b.Source)
}

func (w *twin) compare(t *rapid.T, j *Journal) {
	got := allRows(t, j.Rows())
	want := slices.SortedFunc(maps.Values(w.rows),
		func(a, b Row) int { return a.id().compare(b.id()) })
	if !slices.Equal(got, want) {
		t.Fatalf("rows are\n%v, want\n%v", got, want)
	}
	w.compareCheckpoints(t, j)
	if !slices.EqualFunc(j.Documents(), w.documents, sameDocument) {
		t.Fatalf("documents are %v, want %v", j.Documents(), w.documents)
	}
	if !maps.Equal(j.Names(), w.names) {
		t.Fatalf("names are %v, want %v", j.Names(), w.names)
	}
	var seals []Seal
	for _, g := range slices.Sorted(maps.Keys(w.seals)) {
		seals = append(seals, Seal{g, w.seals[g]})
	}
	if !slices.Equal(j.Seals(), seals) {
		t.Fatalf("seals are %v, want %v", j.Seals(), seals)
	}
	if !slices.Equal(j.Peers(), w.peers) {
		t.Fatalf("peers are %q, want %q", j.Peers(), w.peers)
	}
	if j.Generation() != w.generation || j.Incarnation() != w.incarnation {
		t.Fatalf("generation %d and incarnation %d, want %d and %d", j.Generation(),
			j.Incarnation(), w.generation, w.incarnation)
	}
	if s := j.Stats(); s.Rows != uint64(len(want)) || s.Checkpoints != uint64(len(w.checkpoints)) ||
		s.Sequence != j.Sequence() || s.Sequence < w.sequence {
		t.Fatalf("stats %+v, want %d rows, %d checkpoints and a sequence of at least %d", s,
			len(want), len(w.checkpoints), w.sequence)
	}
	w.sequence = j.Sequence()
}
