package process

import (
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
)

// wire is a stream over a line, as a relay connects them.
func wire(t *testing.T, l *line) (here, there net.Conn) {
	t.Helper()
	here, in := net.Pipe()
	out, there := net.Pipe()
	queue, _ := l.take(in, t.Context().Done())
	go func() {
		l.give(out, queue, t.Context().Done())
		out.Close()
		in.Close()
	}()
	return here, there
}

func newTestLine() *line { return newLine(rand.New(rand.NewPCG(1, 2))) }

func say(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

func wantHeard(t *testing.T, c net.Conn, text string) {
	t.Helper()
	b := make([]byte, len(text))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != text {
		t.Fatalf("heard %q, %v; want %q", b, err, text)
	}
}

func TestStreamsStallAndGoOn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := newTestLine()
		here, there := wire(t, l)
		say(t, here, "before")
		wantHeard(t, there, "before")
		l.set(Fault{CutTCP: true})
		say(t, here, "during")
		here.Close()
		heard := make(chan string)
		go func() {
			b, _ := io.ReadAll(there)
			heard <- string(b)
		}()
		synctest.Wait()
		select {
		case text := <-heard:
			t.Fatalf("heard %q and the end during the cut", text)
		default:
		}
		l.set(Fault{})
		if text := <-heard; text != "during" {
			t.Errorf("heard %q after the cut", text)
		}
		if l.stats.Stalled == 0 {
			t.Error("no stall was counted")
		}
	})
}

func TestStreamsAreDelayed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := newTestLine()
		here, there := wire(t, l)
		l.set(Fault{Delay: 300 * time.Millisecond})
		began := time.Now()
		say(t, here, "late")
		wantHeard(t, there, "late")
		if took := time.Since(began); took != 300*time.Millisecond {
			t.Errorf("took %v", took)
		}
		here.Close()
		if _, err := there.Read(make([]byte, 1)); err == nil {
			t.Error("the end did not arrive")
		}
	})
}

func TestPackets(t *testing.T) {
	for _, c := range []struct {
		name         string
		fault        Fault
		least, most  int
		after        time.Duration
		lost, crowds bool
		send         int
	}{
		{name: "sound", least: 100, most: 100, send: 100},
		{name: "slow", fault: Fault{Delay: time.Second}, least: 100, most: 100, after: time.Second,
			send: 100},
		{name: "cut", fault: Fault{CutUDP: true}, lost: true, send: 100},
		{name: "a stream's cut", fault: Fault{CutTCP: true}, least: 100, most: 100, send: 100},
		{name: "some lost", fault: Fault{Loss: 30}, least: 50, most: 90, lost: true, send: 100},
		{name: "all lost", fault: Fault{Loss: 100}, lost: true, send: 100},
		{name: "more than the queue holds", fault: Fault{Delay: time.Second}, least: maxPackets,
			most: maxPackets + 1, after: time.Second, crowds: true, send: maxPackets + 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				l := newTestLine()
				l.set(c.fault)
				go l.deliver(t.Context().Done())
				began, arrived, last := time.Now(), 0, time.Time{}
				for range c.send {
					l.send([]byte("x"), func([]byte) { arrived++; last = time.Now() })
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if arrived < c.least || arrived > c.most {
					t.Errorf("%d packets arrived, want %d to %d", arrived, c.least, c.most)
				}
				if arrived > 0 && last.Sub(began) != c.after {
					t.Errorf("the last took %v, want %v", last.Sub(began), c.after)
				}
				if slow := c.fault.Delay > 0; (l.stats.Delayed > 0) != slow {
					t.Errorf("slowed down: %+v", l.stats)
				}
				if (l.stats.Lost > 0) != c.lost || (l.stats.Crowded > 0) != c.crowds {
					t.Errorf("counted %+v", l.stats)
				}
			})
		})
	}
}

func TestPacketsUnderWayAreLostByACut(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := newTestLine()
		l.set(Fault{Delay: time.Second})
		go l.deliver(t.Context().Done())
		arrived := false
		l.send([]byte("x"), func([]byte) { arrived = true })
		l.set(Fault{CutUDP: true})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if arrived || l.stats.Lost != 1 {
			t.Errorf("arrived: %v, %+v", arrived, l.stats)
		}
	})
}

// TestOpening: new connections wait for a round trip, and for both directions.
func TestOpening(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		there, back := newTestLine(), newTestLine()
		there.set(Fault{Delay: 100 * time.Millisecond})
		back.set(Fault{Delay: 50 * time.Millisecond, CutTCP: true})
		never, began := make(chan struct{}), time.Now()
		time.AfterFunc(time.Second, func() { back.set(Fault{}) })
		if !there.open(back, t.Context().Done(), never) || time.Since(began) != time.Second {
			t.Errorf("open after %v, want the end of the cut", time.Since(began))
		}
		there.set(Fault{Delay: 100 * time.Millisecond})
		began = time.Now()
		if !there.open(back, t.Context().Done(), never) ||
			time.Since(began) != 100*time.Millisecond {
			t.Errorf("open after %v, want a round trip", time.Since(began))
		}
		there.set(Fault{CutTCP: true})
		given := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(given) })
		if there.open(back, t.Context().Done(), given) {
			t.Error("open though the caller gave up")
		}
	})
}
