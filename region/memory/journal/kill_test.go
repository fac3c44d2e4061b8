package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// childJournal names, in a child process, the journal to record into.
const childJournal = "QUOTAD_TEST_JOURNAL"

func TestMain(m *testing.M) {
	if path := os.Getenv(childJournal); path != "" {
		err := recordForEver(path)
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

const childWriters = 4

// announcedWith is the checkpoint that the child makes beside a row, newer with each row of its
// cell. Now and then its use is less than that of an earlier one.
func announcedWith(r Row) Checkpoint {
	return Checkpoint{Bucket: r.Bucket, Cell: r.Cell, Used: r.Lent % 7,
		At: quantity.StoreTime(r.Lent), Until: r.Until, Generation: r.Generation}
}

// recordForEver records rows from several goroutines until the process is killed, and makes a
// checkpoint beside each. It prints a row only after both calls returned. Half of the calls raise
// an earlier row. Meanwhile the file grows, is remapped, and other rows are pruned.
func recordForEver(path string) error {
	j, err := Open(path, us1)
	if err != nil {
		return err
	}
	first := quantity.Cell(int64(j.Incarnation()) << 32)
	var printing sync.Mutex
	failed := make(chan error)
	for w := range childWriters {
		go func() {
			for i := quantity.StoreTime(0); ; i++ {
				r := Row{Bucket: fmt.Sprint("bucket-", w), Peer: "eu",
					Cell: quantity.Cell(int64(first) + int64(i/2)), Lent: quantity.Units(i + 1),
					Returned: quantity.Units(i / 3), Burst: quantity.Units(i / 5),
					Generation: uint64(i), Until: 1 << 50}
				passing := Row{Bucket: fmt.Sprint("passing-", w, strings.Repeat(".", 300)),
					Peer: "ap", Cell: quantity.Cell(int64(first) + int64(i)), Until: i}
				if err := j.Record(context.Background(), []Row{r, passing}); err != nil {
					failed <- err
					return
				}
				if err := j.Checkpoint(context.Background(),
					[]Checkpoint{announcedWith(r)}); err != nil {
					failed <- err
					return
				}
				printing.Lock()
				fmt.Printf("%s %d %d %d %d %d\n", r.Bucket, r.Cell, r.Lent, r.Returned, r.Burst,
					r.Generation)
				printing.Unlock()
				if i%16 == 0 && w == 0 {
					if _, _, err := j.Prune(i); err != nil {
						failed <- err
						return
					}
				}
			}
		}()
	}
	return <-failed
}

// TestKilledProcessKeepsWhatItAnnounced kills a recording process with SIGKILL
// again and again, and demands every row it printed from the reopened file.
func TestKilledProcessKeepsWhatItAnnounced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	printed := make(map[rowID]Row)
	incarnation := uint64(0)
	for round := range 6 {
		lines := 1 + rand.IntN(120)
		t.Logf("round %d: kill after %d lines", round, lines)
		killAfter(t, path, lines, round == 0, printed)
		j := mustOpen(t, path, us1)
		// The child raised it once, unless it was killed in its very Open.
		if got := j.Incarnation(); got != incarnation+2 {
			t.Fatalf("incarnation %d after %d and a child", got, incarnation)
		}
		incarnation = j.Incarnation()
		durable := make(map[rowID]Row)
		for _, r := range allRows(t, j.Rows()) {
			durable[r.id()] = r
		}
		for id, want := range printed {
			if got, ok := durable[id]; !ok || got.raise(want) != got {
				t.Fatalf("round %d: %v was announced, the journal holds %v", round, want, got)
			}
			demandCheckpoint(t, j, announcedWith(want))
		}
		mustClose(t, j)
	}
}

// demandCheckpoint fails the test unless the journal holds it or a newer one.
func demandCheckpoint(t *testing.T, j *Journal, want Checkpoint) {
	t.Helper()
	found, err := j.Checkpoints(want.Bucket)
	suite.Must(t, err)
	for _, got := range found {
		if got.Cell == want.Cell && got.merge(want) == got {
			return
		}
	}
	t.Fatalf("%v was made, the journal holds %v", want, found)
}

// killAfter runs a child until it has printed that many lines, and kills it. It adds every line to
// printed, including those that came after the decision to kill it.
func killAfter(t *testing.T, path string, lines int, probe bool, printed map[rowID]Row) {
	t.Helper()
	self, err := os.Executable()
	suite.Must(t, err)
	child := exec.Command(self)
	child.Env = append(os.Environ(), childJournal+"="+path)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	suite.Must(t, err)
	suite.Must(t, child.Start())
	defer child.Wait()
	defer child.Process.Kill()
	reader := bufio.NewReader(out)
	for n := 0; ; n++ {
		line, err := reader.ReadString('\n')
		if errors.Is(err, io.EOF) {
			if n < lines {
				t.Fatalf("the child ended by itself after %d lines", n)
			}
			return // a line cut short by the kill was never announced
		}
		suite.Must(t, err)
		r := Row{Peer: "eu", Until: 1 << 50}
		if _, err := fmt.Sscan(line, &r.Bucket, &r.Cell, &r.Lent, &r.Returned, &r.Burst,
			&r.Generation); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		printed[r.id()] = r.raise(printed[r.id()])
		if n+1 != lines {
			continue
		}
		if probe {
			demandHeldBy(t, path, child.Process.Pid)
		}
		suite.Must(t, child.Process.Kill())
	}
}

func demandHeldBy(t *testing.T, path string, pid int) {
	t.Helper()
	if _, err := Open(path, us1); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(),
		fmt.Sprint("pid ", pid)) {
		t.Fatalf("Open while the child has the journal open = %v, want ErrInUse naming pid %d", err,
			pid)
	}
}
