package journal

import (
	"fmt"
	"io"
	"os"
)

// The owner's note is a small text file beside the journal. It is for the error of a second process
// that finds the journal in use. The lock decides who has the journal, never this note: the note
// may be missing or left over from a crash.

const ownerSuffix = ".owner"

func writeOwner(path string, owner identity) {
	text := fmt.Sprintf("%v, pid %d", owner, os.Getpid())
	// An error is dropped: without the note the other process's error says less,
	// and nothing else depends on it.
	_ = os.WriteFile(path+ownerSuffix, []byte(text), fileMode)
}

// removeOwner is called while the journal is still locked. So the note it removes cannot be that of
// the next process to hold the journal.
func removeOwner(path string) {
	_ = os.Remove(path + ownerSuffix) // a note left over is overwritten by the next holder
}

// readOwner describes the process that holds the journal, as far as it is known.
func readOwner(path string) string {
	f, err := os.Open(path + ownerSuffix)
	if err != nil {
		return "it left no note of who it is"
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 2*MaxPeerBytes+100))
	if err != nil || len(text) == 0 {
		return "it left no note of who it is"
	}
	return fmt.Sprintf("its note says: %s", text)
}
