package journal

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	bolt "go.etcd.io/bbolt"

	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
)

var kept = Row{Bucket: "kept", Peer: "eu", Cell: 1, Lent: 5, Until: 9}

// TestFailedJournalIsNeverTrustedAgain breaks an open journal in every way that can be provoked. It
// demands the first error from then on, and from the next journal on the file what was durable.
func TestFailedJournalIsNeverTrustedAgain(t *testing.T) {
	var hook func(*bolt.Tx) error
	for _, c := range []struct {
		name     string
		hurt     func(t *testing.T, j *Journal, path string)
		says     string
		reopened bool // the file itself is unhurt
	}{
		{"commit fails", func(*testing.T, *Journal, string) {
			hook = func(*bolt.Tx) error { return errDisk }
		}, "no space left", true},
		{"commit fails after writing", func(*testing.T, *Journal, string) {
			hook = func(tx *bolt.Tx) error { return errors.Join(commitUnsynced(tx), errDisk) }
		}, "no space left", true},
		{"commit panics", func(*testing.T, *Journal, string) {
			hook = func(*bolt.Tx) error { panic("assertion failed") }
		}, "assertion failed", true},
		{"file is closed", func(t *testing.T, j *Journal, _ string) {
			suite.Must(t, j.disk.(*file).handle.Close())
		}, "closed", true},
		{"file is cut", func(t *testing.T, _ *Journal, path string) {
			suite.Must(t, os.Truncate(path, 0))
		}, "panicked", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			hook = commitUnsynced
			opts := us1
			opts.commit = func(tx *bolt.Tx) error { return hook(tx) }
			j, path := newJournal(t, opts)
			mustRecord(t, j, kept)
			c.hurt(t, j, path)
			first := j.Record(t.Context(), []Row{numbered(0)})
			if !errors.Is(first, ErrFailed) || !strings.Contains(first.Error(), c.says) ||
				!strings.Contains(first.Error(), path) {
				t.Fatalf("Record = %v, want ErrFailed naming the file and %q", first, c.says)
			}
			hook = commitUnsynced
			if again := j.Record(t.Context(), []Row{kept}); again == nil ||
				again.Error() != first.Error() {
				t.Fatalf("the next Record = %v, want the first error", again)
			}
			for _, err := range j.Rows() {
				if !errors.Is(err, ErrFailed) {
					t.Fatalf("Rows = %v: it may show what is not durable", err)
				}
			}
			j.Close() // its error, if any, is about the broken handle
			if c.reopened {
				found := allRows(t, mustOpen(t, path, us1).Rows())
				if len(found) == 0 || found[len(found)-1] != kept {
					t.Fatalf("reopened with %v, want the row that was durable", found)
				}
			} else if _, err := Open(path, us1); !errors.Is(err, ErrDamaged) {
				t.Fatalf("reopened = %v, want ErrDamaged", err)
			}
		})
	}
}

func TestFailureReachesEveryCallOfTheBatch(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		enter, leave, opening := make(chan struct{}), make(chan error), true
		opts := us1
		opts.commit = func(tx *bolt.Tx) error {
			if opening {
				opening = false
				return commitUnsynced(tx)
			}
			enter <- struct{}{}
			return <-leave
		}
		j, _ := newJournal(t, opts)
		results := make(chan error, 20)
		for i := range cap(results) {
			go func() { results <- j.Record(t.Context(), []Row{numbered(i)}) }()
		}
		<-enter
		synctest.Wait()
		leave <- errDisk
		for range cap(results) {
			if err := <-results; !errors.Is(err, errDisk) {
				t.Fatalf("Record = %v, in the failed commit or after it", err)
			}
		}
		mustClose(t, j)
	})
}

func TestCloseWaitsForTheRunningCommit(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate()
		j, path := newJournal(t, g.options())
		running, waiting, shut := make(chan error, 1), make(chan error, 1), make(chan error, 2)
		go func() { running <- j.Record(t.Context(), []Row{numbered(0)}) }()
		<-g.enter
		go func() { waiting <- j.Record(t.Context(), []Row{numbered(1)}) }()
		synctest.Wait()
		go func() { shut <- j.Close() }()
		synctest.Wait()
		if len(shut) != 0 {
			t.Fatal("Close returned while a commit ran")
		}
		if err := j.Record(t.Context(), []Row{numbered(2)}); !errors.Is(err, ErrClosed) {
			t.Fatalf("Record after Close = %v", err)
		}
		g.leave <- struct{}{}
		if err := <-running; err != nil {
			t.Fatalf("Record in the running commit = %v", err)
		}
		// The writer may take one more batch when both are ready.
		select {
		case <-g.enter:
			g.leave <- struct{}{}
		case err := <-shut:
			shut <- err
		}
		second := <-waiting
		if second != nil && !errors.Is(second, ErrClosed) {
			t.Fatalf("Record waiting at Close = %v", second)
		}
		suite.Must(t, <-shut)
		if err := j.Close(); err != nil {
			t.Fatalf("second Close = %v", err)
		}
		want := []Row{numbered(0)}
		if second == nil {
			want = append(want, numbered(1))
		}
		again := mustOpen(t, path, unsynced())
		sameRows(t, again, want)
		mustClose(t, again)
	})
}

func TestRecordNamesTheFaultyRow(t *testing.T) {
	long := strings.Repeat("x", MaxBucketBytes+1)
	for _, c := range []struct {
		name string
		row  Row
		says string
	}{
		{"no bucket", Row{Peer: "eu"}, "bucket id has 0 bytes"},
		{"long bucket", Row{Bucket: long, Peer: "eu"}, "bucket id has 4097 bytes"},
		{"no peer", Row{Bucket: "b"}, "peer's name has 0 bytes"},
		{"long peer", Row{Bucket: "b", Peer: long[:MaxPeerBytes+1]}, "peer's name has 256 bytes"},
		{"lent below", Row{Bucket: "b", Peer: "eu", Lent: -1}, "lent is -1"},
		{"lent above", Row{Bucket: "b", Peer: "eu", Lent: MaxUnits + 1},
			"lent is 2251799813685249"},
		{"returned below", Row{Bucket: "b", Peer: "eu", Returned: -1}, "returned is -1"},
		{"returned above", Row{Bucket: "b", Peer: "eu", Returned: MaxUnits + 1},
			"returned is 2251799813685249"},
		{"burst below", Row{Bucket: "b", Peer: "eu", Burst: -1}, "burst is -1"},
		{"burst above", Row{Bucket: "b", Peer: "eu", Burst: MaxUnits + 1},
			"burst is 2251799813685249"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := newDirect(t, lab.NewDisk()).Record(context.Background(), []Row{kept, c.row})
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.says) ||
				!strings.Contains(err.Error(), "row 2 of 2") {
				t.Fatalf("Record = %v, want ErrInvalid, row 2 of 2 and %q", err, c.says)
			}
		})
	}
}
