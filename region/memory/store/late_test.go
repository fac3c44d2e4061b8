package store

import (
	"context"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// TestLate: an error is late only if the server was silent.
func TestLate(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for err, want := range map[error]bool{context.DeadlineExceeded: true,
		os.ErrDeadlineExceeded: true, redis.ErrPoolTimeout: true,
		io.EOF: false, refused: false, context.Canceled: false} {
		if got := Late(Failed("h:1", "script decide", err)); got != want {
			t.Errorf("%v: late %v", err, got)
		}
	}
	if Late(nil) {
		t.Error("no error is late")
	}
}
