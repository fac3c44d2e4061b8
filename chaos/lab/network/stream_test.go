package network

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/nettest"
	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestConnConformance runs the conformance tests of golang.org/x/net, on the
// real clock.
func TestConnConformance(t *testing.T) {
	for name, delay := range map[string]time.Duration{"without delay": 0, "with delay": ms} {
		t.Run(name, func(t *testing.T) {
			nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
				n := New()
				n.SetDelayAll(delay)
				c1, c2 = connect(t, n.Host("a"), n.Host("b"))
				return c1, c2, func() { n.Close() }, nil
			})
		})
	}
}

// TestStreamIsHeldByACut: data on its way when a cut begins, and data written during the cut,
// arrives one delay after the heal, and so does a close.
func TestStreamIsHeldByACut(t *testing.T) {
	for _, early := range []bool{false, true} {
		bubble.Test(t, func(t *testing.T) {
			n, a, b := twoHosts(t)
			c, s := connect(t, a, b)
			start := time.Now()
			mustWrite(t, c, "before ")
			time.Sleep(10 * ms)
			n.Cut("a", "b", 300*time.Second)
			mustWrite(t, c, "during")
			c.Close()

			mustWrite(t, s, "other way") // not cut, but nobody reads it
			end := 300*time.Second + 10*ms
			if early {
				time.AfterFunc(time.Second, func() { n.Cut("a", "b", 0) })
				end = time.Second + 10*ms
			}
			got, err := io.ReadAll(s)
			if took := time.Since(start); err != nil || string(got) != "before during" ||
				took != end+40*ms {
				t.Errorf("read %q, %v after %v, want everything after %v", got, err, took,
					end+40*ms)
			}
			if got := n.Stats("a", "b").StreamBytes; got != 13 {
				t.Errorf("%d stream bytes counted, want 13", got)
			}
		})
	}
}

func TestLaterCutReplacesTheEnd(t *testing.T) {
	for _, tc := range []struct {
		name   string
		second time.Duration // at 1 s, over a first cut of 10 s
		want   time.Duration
	}{
		{"later", 20 * time.Second, 21 * time.Second},
		{"sooner", 2 * time.Second, 3 * time.Second},
		{"heal", 0, time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				n, a, b := twoHosts(t)
				c, s := connect(t, a, b)
				n.Cut("a", "b", 10*time.Second)
				time.AfterFunc(time.Second, func() { n.Cut("a", "b", tc.second) })
				mustWrite(t, c, "x")
				wantTook(t, tc.want+40*ms, func() { s.Read(make([]byte, 1)) })
			})
		})
	}
}

func TestIsolateAndHealAll(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n, a, b := twoHosts(t)
		pc := packetConnOn(t, n.Host("c"), 1)
		pa, pb := packetConnOn(t, a, 1), packetConnOn(t, b, 1)
		all := []net.PacketConn{pa, pb, pc}
		send := func() {
			for _, from := range all {
				for _, to := range all {
					from.WriteTo([]byte("x"), to.LocalAddr())
				}
			}
			time.Sleep(time.Second)
		}
		delivered := func() (to [3][3]uint64) {
			for i, from := range []string{"a", "b", "c"} {
				for j, dest := range []string{"a", "b", "c"} {
					to[i][j] = n.Stats(from, dest).PacketsDelivered
				}
			}
			return to
		}
		n.Isolate("b", time.Hour)
		send()
		if got, want := delivered(), [3][3]uint64{{1, 0, 1}, {0, 1, 0}, {1, 0, 1}}; got != want {
			t.Errorf("isolated: delivered %v, want %v", got, want)
		}
		n.HealAll()
		n.CutBoth("a", "c", time.Hour)
		send()
		if got, want := delivered(), [3][3]uint64{{2, 1, 1}, {1, 2, 1}, {1, 1, 2}}; got != want {
			t.Errorf("healed, a and c cut: delivered %v, want %v", got, want)
		}
	})
}

func TestWriteWaitsForRoom(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		_, a, b := twoHosts(t)
		c, s := connect(t, a, b)
		big := bytes.Repeat([]byte("quotad"), window/4) // one and a half windows
		c.SetWriteDeadline(time.Now().Add(time.Second))
		wantTook(t, time.Second, func() {
			n, err := c.Write(big)
			if n != window {
				t.Errorf("wrote %d bytes, want %d", n, window)
			}
			wantTimeout(t, err)
		})
		c.SetWriteDeadline(time.Time{})
		go func() {
			c.Write(big[window:])
			c.Close()
		}()
		got, err := io.ReadAll(s)
		if err != nil || !bytes.Equal(got, big) {
			t.Errorf("read %d bytes, %v; want the %d written", len(got), err, len(big))
		}
	})
}

// TestCloseIsLearnedOnArrival: a writer can write until the far end's close has arrived. Then its
// writes fail, including one that waits for room.
func TestCloseIsLearnedOnArrival(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		_, a, b := twoHosts(t)
		c, s := connect(t, a, b)
		s.Close()
		s.Close()
		mustWrite(t, c, "into the void")
		wantTook(t, 40*ms, func() {
			if _, err := c.Write(make([]byte, 2*window)); !errors.Is(err, syscall.EPIPE) {
				t.Errorf("write: %v, want a broken pipe", err)
			}
		})
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("read: %v, want EOF", err)
		}
		if _, err := s.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read after close: %v", err)
		}
	})
}

func TestConcurrentWritesDoNotMix(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		_, a, b := twoHosts(t)
		c, s := connect(t, a, b)
		const size = window + 1000
		for _, letter := range []byte("xyz") {
			go c.Write(bytes.Repeat([]byte{letter}, size))
		}
		buf := make([]byte, size)
		for range 3 {
			if _, err := io.ReadFull(s, buf); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(buf, bytes.Repeat(buf[:1], size)) {
				t.Fatal("two writes are mixed")
			}
		}
	})
}

func TestSetDelayAllCoversLinksOldAndNew(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n, a, b := twoHosts(t)
		c, s := connect(t, a, b)
		n.SetDelayAll(5 * ms)
		if a.Name() != "a" || n.Host("a") != a {
			t.Errorf("host a is now %q", n.Host("a").Name())
		}
		mustWrite(t, c, "x")
		wantTook(t, 5*ms, func() { s.Read(make([]byte, 1)) })
		wantTook(t, 10*ms, func() { connect(t, n.Host("new"), b) })
	})
}

func TestListenerClose(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		_, a, b := twoHosts(t)
		l, err := b.Listen(80)
		suite.Must(t, err)
		if _, err := b.Listen(80); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("port taken: %v", err)
		}
		if _, err := b.Listen(-1); err == nil {
			t.Error("port -1 was accepted")
		}
		waiting, err := a.DialContext(t.Context(), "tcp", "b:80")
		suite.Must(t, err)
		l.Close()
		l.Close()
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept after close: %v", err)
		}
		if _, err := waiting.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("connection nobody accepted: %v, want EOF", err)
		}
		if _, err := b.Listen(80); err != nil {
			t.Errorf("the port is not free again: %v", err)
		}
	})
}

// TestNetworkClose: everything that waits ends with net.ErrClosed. The end of the bubble checks
// that no goroutine remains.
func TestNetworkClose(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n, a, b := twoHosts(t)
		c, s := connect(t, a, b)
		l, _ := b.Listen(81)
		p := packetConnOn(t, a, 1)
		n.Cut("a", "b", time.Hour)
		ends := make(chan error)
		for _, wait := range []func() error{
			func() error { _, err := s.Read(make([]byte, 1)); return err },
			func() error { _, err := c.Write(make([]byte, 2*window)); return err },
			func() error { _, err := l.Accept(); return err },
			func() error { _, _, err := p.ReadFrom(nil); return err },
			func() error { _, err := a.DialContext(t.Context(), "tcp", "b:81"); return err },
		} {
			go func() { ends <- wait() }()
		}
		synctest.Wait()
		n.Close()
		n.Close()
		for range 5 {
			if err := <-ends; !errors.Is(err, net.ErrClosed) {
				t.Errorf("ended with %v, want net.ErrClosed", err)
			}
		}
		n.HealAll()
		n.Isolate("a", time.Hour)
		n.Cut("a", "b", time.Hour)
		for _, close := range []io.Closer{c, s, l, p} {
			close.Close()
		}
		if _, err := b.Listen(82); !errors.Is(err, net.ErrClosed) {
			t.Errorf("listen on a closed network: %v", err)
		}
		if _, err := b.DialContext(t.Context(), "tcp", "a:1"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("dial on a closed network: %v", err)
		}
	})
}

// TestStreamDeliversEverythingInOrder: under any cuts and changes of delay a
// stream delivers exactly what was written, and nothing while its direction
// is cut.
func TestStreamDeliversEverythingInOrder(t *testing.T) {
	suite.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(drawStep), 1, 30).Draw(rt, "steps")
		var err error
		bubble.Test(t, func(t *testing.T) { err = playSteps(t, steps) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// step is one thing that happens to a stream.
type step struct {
	kind string
	d    time.Duration
	size int
}

func drawStep(t *rapid.T) step {
	return step{
		kind: rapid.SampledFrom([]string{"write", "cut", "delay", "sleep"}).Draw(t, "kind"),
		d:    time.Duration(rapid.IntRange(0, 200).Draw(t, "ms")) * ms,
		size: rapid.IntRange(0, 2000).Draw(t, "size"),
	}
}

func playSteps(t *testing.T, steps []step) error {
	n, a, b := twoHosts(t)
	c, s := connect(t, a, b)
	received := make(chan []byte, 1)
	go func() {
		got, _ := io.ReadAll(s)
		received <- got
	}()
	var (
		written  []byte
		cutUntil time.Time
	)
	for i, step := range steps {
		switch step.kind {
		case "write":
			p := bytes.Repeat([]byte{byte(i)}, step.size)
			written = append(written, p...)
			c.Write(p)
		case "cut":
			n.Cut("a", "b", step.d)
			cutUntil = time.Now().Add(step.d)
		case "delay":
			n.SetDelay("a", "b", step.d)
		case "sleep":
			before := n.Stats("a", "b").StreamBytes
			cut := time.Now().Add(step.d).Before(cutUntil)
			time.Sleep(step.d)
			if after := n.Stats("a", "b").StreamBytes; cut && after != before {
				return fmt.Errorf("step %d: %d bytes arrived during a cut", i, after-before)
			}
		}
	}
	c.Close()
	if got := <-received; !bytes.Equal(got, written) {
		return fmt.Errorf("received %d bytes, want the %d written", len(got), len(written))
	}
	return nil
}
