package store

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// everyCall runs every call of a store once and returns the errors.
func everyCall(ctx context.Context, s *Store) map[string]error {
	_, open := s.Open(ctx, first)
	_, inspect := s.Inspect(ctx, algorithms.Inspect{Fence: under(epoch),
		Target: algorithms.Target{Key: BucketKey(Whole, "k"), Terms: terms(10)}})
	_, adopt := s.Adopt(ctx, "2-b")
	decides := s.Decide(ctx, []algorithms.Decide{charge("k", 10, 1), charge("k", 10, 1)})
	return map[string]error{
		"open": open, "inspect": inspect, "decide": decides[0].Err,
		"decide, second": decides[1].Err,
		"adopt":          adopt,
		"lend": s.Lend(ctx,
			[]algorithms.Lend{{Target: algorithms.Target{Key: BucketKey(Whole, "k"),
				Terms: terms(10)}}})[0].Err,
		"credit": s.Credit(ctx,
			[]algorithms.Credit{{Target: algorithms.Target{Key: BucketKey(Whole, "k"),
				Terms: terms(10)}}})[0].Err,
		"assign": s.Assign(ctx,
			[]algorithms.Assign{holding(Whole, "assigned", "n1", 1, 0)})[0].Err,
	}
}

// TestDeadServer: while the server is gone every call fails; a new one in its place is an empty
// store.
func TestDeadServer(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		s := node(t, server, first)
		serves(t, s, "k")
		known := s.Generation()
		suite.Must(t, server.Close())
		for call, err := range everyCall(t.Context(), s) {
			if err == nil {
				t.Errorf("%s: no error from a dead server", call)
			}
			if errors.Is(err, ErrUnknownStore) {
				t.Errorf("%s: a dead server taken for one that was opened anew: %v", call, err)
			}
		}
		if s.Generation() != known {
			t.Errorf("generation %d, want %d as before", s.Generation(), known)
		}
		kind.startAt(t, address(server))
		allAre(t, s, "k", algorithms.StatusUnknown)
		if got := mustOpen(t, s, Opening{Region: "eu", Epoch: epoch,
			LastGeneration: known}); !got.Lost ||
			got.Generation <= known {
			t.Errorf("opened %+v, want a loss and a generation above %d", got, known)
		}
		closedCells(t, s, epoch)
	})
}

// TestUnreachableMessage: the error of Open names the server and what to look at.
func TestUnreachableMessage(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		_ = server.Close()
		_, err := connect(t, Options{URL: server.URL}).Open(t.Context(), first)
		for _, words := range []string{address(server), "check that it runs", "redis.url"} {
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%v does not say %q", err, words)
			}
		}
	})
}

// relay stands between a store and its server.
type relay struct {
	url   string
	gate  sync.RWMutex // while a test holds it, no reply arrives
	sever atomic.Bool  // the next reply is lost together with its connection
}

// newRelay starts a relay to a server; it ends with the test.
func newRelay(t *testing.T, server *servers.Server) *relay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	suite.Must(t, err)
	r := &relay{url: "redis://" + l.Addr().String()}
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", address(server))
			if err != nil {
				near.Close()
				continue
			}
			context.AfterFunc(ctx, func() { near.Close(); far.Close() })
			all.Go(func() { _, _ = io.Copy(far, near); far.Close() })
			all.Go(func() { r.replies(near, far); near.Close(); far.Close() })
		}
	})
	t.Cleanup(func() { stop(); l.Close(); all.Wait() })
	return r
}

func (r *relay) replies(near, far net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := far.Read(buf)
		if err != nil || r.sever.Swap(false) {
			return
		}
		r.gate.RLock()
		_, err = near.Write(buf[:n])
		r.gate.RUnlock()
		if err != nil {
			return
		}
	}
}

// TestLostReplyChargesOnce: a decision whose reply is lost is an error, and is never sent again.
func TestLostReplyChargesOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		direct := node(t, server, first)
		r := newRelay(t, server)
		s := connect(t, Options{URL: r.url})
		mustOpen(t, s, first)
		serves(t, s, "k")
		for i := range quantity.Units(3) {
			r.sever.Store(true)
			if got := s.Decide(t.Context(),
				[]algorithms.Decide{charge("k", 10, 1)})[0]; got.Err == nil {
				t.Fatalf("an answer without a reply: %+v", got)
			}
			if used := inspect(t, direct, "k", terms(10)).Used; used != i*2+2 {
				t.Errorf("used %d after %d charges", used, i*2+2)
			}
			serves(t, s, "k")
		}
	})
}

func timedOut(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// TestSilentServer: a server that takes requests and does not answer holds no call beyond the
// store's timeout.
func TestSilentServer(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		r := newRelay(t, kind.start(t))
		r.gate.Lock()
		defer r.gate.Unlock()
		s := connect(t, Options{URL: r.url, Timeout: DefaultTimeout})
		// far beyond what the calls may take
		ctx, cancel := context.WithTimeout(t.Context(), suite.Patience)
		defer cancel()
		for call, err := range everyCall(ctx, s) {
			if !timedOut(err) {
				t.Errorf("%s: %v, want a timeout", call, err)
			}
		}
		if ctx.Err() != nil {
			t.Fatal("calls were held until the caller gave up")
		}
	})
}

// TestSilenceEnds: a connection that timed out is not used again, so that no late reply answers
// another call.
func TestSilenceEnds(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		r := newRelay(t, kind.start(t))
		s := connect(t, Options{URL: r.url})
		mustOpen(t, s, first)
		serves(t, s, "k")
		// the caller's deadline, sooner than the store's
		ctx, cancel := context.WithTimeout(t.Context(), DefaultTimeout)
		defer cancel()
		r.gate.Lock()
		got := s.Decide(ctx, []algorithms.Decide{charge("k", 10, 5)})[0]
		r.gate.Unlock()
		if !timedOut(got.Err) {
			t.Fatalf("%+v, want a timeout", got)
		}
		if d := decide(t, s, charge("other", 10, 3)); d.Buckets[0].Used != 3 {
			t.Errorf("%+v is another call's answer", d)
		}
	})
}

// TestPassword: the right one is used; a wrong or missing one is an error that names the setting,
// never the password.
func TestPassword(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.protected(t, "correct-horse")
		at := func(user string) string { return "redis://" + user + address(server) }
		s := connect(t, Options{URL: at(":correct-horse@")})
		mustOpen(t, s, first)
		serves(t, s, "k")
		for _, user := range []string{":wrong-horse@", ""} {
			s := connect(t, Options{URL: at(user)})
			for call, err := range everyCall(t.Context(), s) {
				if err == nil {
					t.Errorf("user %q: %s: no error", user, call)
				} else if strings.Contains(err.Error(), "horse") {
					t.Errorf("user %q: %s: %q tells the password", user, call, err)
				}
				if call == "open" && !strings.Contains(err.Error(), "redis.url") {
					t.Errorf("user %q: %q does not name the setting", user, err)
				}
			}
		}
	})
}

// TestURLThatDoesNotParse: the message shows how to write it, and no password.
func TestURLThatDoesNotParse(t *testing.T) {
	for _, url := range []string{
		"", "127.0.0.1:6379", "localhost", "http://127.0.0.1:6379", "redis://127.0.0.1:port/0",
		"redis://127.0.0.1/first",
		"redis://:hunter2@127.0.0.1:port", "redis://user:hunt%zzer2@127.0.0.1:6379",
		"http://user:hunter2@127.0.0.1:6379",
		"redis://:hunter2/x@127.0.0.1:6379", "redis://:hunter2@127.0.0.1:6379/first",
		"redis://127.0.0.1:6379?hunter=x",
	} {
		_, err := Connect(Options{URL: url})
		if err == nil {
			t.Errorf("url %q is taken", url)
			continue
		}
		if !strings.Contains(err.Error(), "redis://127.0.0.1:6379/0") {
			t.Errorf("url %q: %q does not show how to write it", url, err)
		}
		if strings.Contains(url, "@") &&
			strings.Contains(strings.ReplaceAll(err.Error(), "redis://127.0.0.1:6379/0", ""),
				"er2") {
			t.Errorf("url %q: %q tells the password", url, err)
		}
	}
}

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
