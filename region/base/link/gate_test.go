package link

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// manualClock stands still until it is moved. Safe for concurrent use.
type manualClock struct {
	mu     sync.Mutex
	now    time.Time
	timers map[int]manualTimer
	number int
}

type manualTimer struct {
	at time.Time
	f  func()
}

func newManualClock() *manualClock {
	return &manualClock{now: time.Unix(1_700_000_000, 0), timers: map[int]manualTimer{}}
}

func (c *manualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *manualClock) After(d time.Duration, f func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.number++
	mine := c.number
	c.timers[mine] = manualTimer{c.now.Add(d), f}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.timers, mine)
	}
}

// pass moves the clock and runs the timers that are due.
func (c *manualClock) pass(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	var due []func()
	for i, t := range c.timers {
		if !t.at.After(c.now) {
			due = append(due, t.f)
			delete(c.timers, i)
		}
	}
	c.mu.Unlock()
	for _, f := range due {
		f()
	}
}

var (
	here  = netip.MustParseAddr("127.0.0.1")
	there = []netip.Addr{here}
)

// gatedPair is a real connection: mine goes through the gate, theirs does not.
func gatedPair(t *testing.T, g *Gate) (mine, theirs net.Conn) {
	t.Helper()
	l := listenHere(t)
	mine, err := g.Dialer(net.Dialer{})(t.Context(), "tcp", l.Addr().String())
	suite.Must(t, err)
	theirs, err = l.Accept()
	suite.Must(t, err)
	t.Cleanup(func() { mine.Close(); theirs.Close(); g.Heal() })
	return mine, theirs
}

func listenHere(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	suite.Must(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// untilStalled waits until so many calls wait for a cut to end.
func untilStalled(g *Gate, calls int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.stats.Stalled < calls {
		g.changed.Wait()
	}
}

// outcome is what a Read returned.
type outcome struct {
	text string
	err  error
}

func readLater(c net.Conn) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		b := make([]byte, 16)
		n, err := c.Read(b)
		done <- outcome{string(b[:n]), err}
	}()
	return done
}

func wantRead(t *testing.T, done <-chan outcome, text string) {
	t.Helper()
	if got := <-done; got.text != text || got.err != nil {
		t.Fatalf("read %q, %v; want %q", got.text, got.err, text)
	}
}

func TestGateHoldsAStreamUntilTheCutEnds(t *testing.T) {
	clock := newManualClock()
	g := newGate(clock)
	mine, theirs := gatedPair(t, g)
	reading := readLater(mine) // under way when the cut begins
	g.Cut(there, Both, time.Second)
	mustWrite(t, theirs, "in")
	written := make(chan error, 1)
	go func() {
		_, err := mine.Write([]byte("out"))
		written <- err
	}()
	untilStalled(g, 2)
	clock.pass(time.Second - 1)
	select {
	case <-reading:
		t.Fatal("something was read through the cut")
	case <-written:
		t.Fatal("something was written through the cut")
	default:
	}
	// The cut ends by itself, without Heal.
	clock.pass(1)
	wantRead(t, reading, "in")
	suite.Must(t, <-written)
	wantRead(t, readLater(theirs), "out")
}

func TestGateCutsInwardsOnly(t *testing.T) {
	g := newGate(newManualClock())
	mine, theirs := gatedPair(t, g)
	g.Cut(there, In, time.Minute)
	mustWrite(t, mine, "out")
	wantRead(t, readLater(theirs), "out")
	mustWrite(t, theirs, "in")
	reading := readLater(mine)
	untilStalled(g, 1)
	g.Heal()
	wantRead(t, reading, "in")
}

func TestGateCutsOutwardsOnly(t *testing.T) {
	g := newGate(newManualClock())
	mine, theirs := gatedPair(t, g)
	g.Cut(there, Out, time.Minute)
	mustWrite(t, theirs, "in")
	wantRead(t, readLater(mine), "in")
	go mine.Write([]byte("out"))
	untilStalled(g, 1)
	g.Heal()
	wantRead(t, readLater(theirs), "out")
}

// A Read that gives up during a cut loses nothing of what arrived meanwhile.
func TestGateKeepsWhatAReadGaveUpOn(t *testing.T) {
	g := newGate(newManualClock())
	mine, theirs := gatedPair(t, g)
	reading := readLater(mine)
	g.Cut(there, In, time.Minute)
	mustWrite(t, theirs, "late")
	untilStalled(g, 1)
	mine.SetReadDeadline(time.Unix(1, 0))
	wantTimeout(t, (<-reading).err)
	mine.SetReadDeadline(time.Time{})
	g.Heal()
	b := make([]byte, 1) // and in as small pieces as one likes
	for _, want := range "late" {
		if _, err := mine.Read(b); err != nil || b[0] != byte(want) {
			t.Fatalf("read %q, %v; want %q", b, err, want)
		}
	}
}

func TestGateWriteGivesUpAtItsDeadline(t *testing.T) {
	g := newGate(newManualClock())
	mine, _ := gatedPair(t, g)
	g.Cut(there, Out, time.Minute)
	written := make(chan error, 1)
	go func() {
		_, err := mine.Write([]byte("out"))
		written <- err
	}()
	untilStalled(g, 1)
	mine.SetDeadline(time.Now().Add(ms))
	wantTimeout(t, <-written)
}

// A close is not seen through a cut, in neither direction.
func TestGateHoldsCloses(t *testing.T) {
	for _, closedHere := range []bool{true, false} {
		g := newGate(newManualClock())
		mine, theirs := gatedPair(t, g)
		g.Cut(there, Both, time.Minute)
		var reading <-chan outcome
		if closedHere {
			stalled := readLater(mine)
			untilStalled(g, 1)
			mine.Close()
			if err := (<-stalled).err; !errors.Is(err, net.ErrClosed) {
				t.Errorf("a Read that is closed beside ends with %v", err)
			}
			if _, err := mine.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
				t.Errorf("a Write after the close ends with %v", err)
			}
			reading = readLater(theirs)
		} else {
			theirs.Close()
			reading = readLater(mine)
			untilStalled(g, 1)
		}
		select {
		case got := <-reading:
			t.Fatalf("the close came through the cut: %v", got)
		default:
		}
		g.Heal()
		if got := <-reading; got.err != io.EOF {
			t.Errorf("after the cut the far end reads %v, want EOF", got.err)
		}
	}
}

func TestGateDialHangsUntilTheCutEnds(t *testing.T) {
	clock := newManualClock()
	g := newGate(clock)
	l := listenHere(t)
	dial := g.Dialer(net.Dialer{})
	g.Cut(there, In, time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := dial(ctx, "tcp", l.Addr().String())
		failed <- err
	}()
	untilStalled(g, 1)
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("a dial that was given up ends with %v", err)
	}
	dialed := make(chan net.Conn, 1)
	go func() {
		c, err := dial(t.Context(), "tcp", "localhost:"+portOf(l))
		if err != nil {
			t.Error(err)
		}
		dialed <- c
	}()
	untilStalled(g, 1)
	clock.pass(time.Second)
	if c := <-dialed; c != nil {
		c.Close()
	}
}

func portOf(l net.Listener) string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func TestGateDialEndsWithTheDialersTimeout(t *testing.T) {
	g := newGate(newManualClock())
	l := listenHere(t)
	g.Cut(there, Both, time.Minute)
	_, err := g.Dialer(net.Dialer{Timeout: 10 * ms})(t.Context(), "tcp", l.Addr().String())
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("the dial ends with %v, want a timeout", err)
	}
}

func TestGateListenerStallsWhoIsCut(t *testing.T) {
	g := newGate(newManualClock())
	l := g.Listener(listenHere(t))
	g.Cut(there, In, time.Minute)
	theirs, err := net.Dial("tcp", l.Addr().String())
	suite.Must(t, err)
	defer theirs.Close()
	mustWrite(t, theirs, "in")
	mine, err := l.Accept()
	suite.Must(t, err)
	defer mine.Close()
	reading := readLater(mine)
	untilStalled(g, 1)
	g.Heal()
	wantRead(t, reading, "in")
}

// Cuts end one after the other, are replaced in their own direction only, and never outlast MaxCut.
func TestGateCutsEndByThemselves(t *testing.T) {
	clock := newManualClock()
	g := newGate(clock)
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("::ffff:192.0.2.2")
	g.Cut([]netip.Addr{a, b}, Both, 2*time.Second)
	g.Cut([]netip.Addr{a}, In, time.Second)
	g.Cut([]netip.Addr{b.Unmap()}, Out, 24*time.Hour)
	for _, step := range []struct {
		after                time.Duration
		aIn, aOut, bIn, bOut bool
	}{
		{0, true, true, true, true},
		{time.Second, false, true, true, true},
		{time.Second, false, false, false, true},
		{MaxCut - 2*time.Second - 1, false, false, false, true},
		{1, false, false, false, false},
	} {
		clock.pass(step.after)
		got := [4]bool{g.IsCut(a, In), g.IsCut(a, Out), g.IsCut(b, In), g.IsCut(b, Out)}
		if want := [4]bool{step.aIn, step.aOut, step.bIn, step.bOut}; got != want {
			t.Errorf("after %v more: %v, want %v", step.after, got, want)
		}
	}
	if len(g.cuts) != 0 || g.stop != nil {
		t.Errorf("after the last cut %d are kept, timer set: %v", len(g.cuts), g.stop != nil)
	}
}

func TestGateOnTheClockOfTheMachine(t *testing.T) {
	g := NewGate()
	mine, theirs := gatedPair(t, g)
	g.Cut(there, In, 20*ms)
	mustWrite(t, theirs, "in")
	wantRead(t, readLater(mine), "in")
	if g.IsCut(here, In) {
		t.Error("what was sent during the cut came before its end")
	}
}
