package gossip

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
)

func newTestOutbox() *outbox { return newOutbox(4, func() int { return 3 }) }

func TestOutboxIsBoundedAndCountsWhatItDrops(t *testing.T) {
	o := newTestOutbox()
	for i := range maxQueued + 100 {
		o.put(fmt.Sprint(i), []byte("x"))
	}
	if queued, dropped := o.counts(); queued != maxQueued || dropped != 100 {
		t.Errorf("%d queued and %d dropped, want %d and 100", queued, dropped, maxQueued)
	}
}

func TestOutboxReplacesByKeyAndSendsALimitedNumberOfTimes(t *testing.T) {
	o := newTestOutbox()
	o.put("k", []byte("old"))
	o.put("other", []byte("other"))
	o.put("k", []byte("new"))
	got := make(map[string]int)
	for range 20 {
		for _, b := range o.take(3, packetSize) {
			got[string(b)]++
		}
	}
	if got["old"] != 0 || got["new"] != 4 || got["other"] != 4 {
		t.Errorf("sent %v, want new and other four times each", got)
	}
	if queued, dropped := o.counts(); queued != 0 || dropped != 0 {
		t.Errorf("%d queued, %d dropped, want none", queued, dropped)
	}
}

// TestOldChangesEnd: a change that there was no room to send is not passed on for ever. The youngest go
// first, and the older ones in what room they leave.
func TestOldChangesEnd(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		o := newTestOutbox()
		o.put("first", []byte("first"))
		time.Sleep(passedOn)
		o.put("second", []byte("second"))
		for _, c := range []struct {
			limit int
			want  string
		}{{9, "[second]"}, {17, "[second first]"}} {
			if got := fmt.Sprintf("%s", o.take(3, c.limit)); got != c.want {
				t.Errorf("%d bytes have %s, want %s", c.limit, got, c.want)
			}
		}
		time.Sleep(passedOn)
		if got := fmt.Sprintf("%s", o.take(3, packetSize)); got != "[second]" {
			t.Errorf("then %s is sent", got)
		}
		time.Sleep(passedOn)
		if got := o.take(3, packetSize); len(got) > 0 {
			t.Errorf("at last %s is sent", got)
		}
		if queued, dropped := o.counts(); queued != 0 || dropped != 2 {
			t.Errorf("%d are queued, %d dropped", queued, dropped)
		}
	})
}

// TestLargestChangeFitsAPacket: with encryption.
func TestLargestChangeFitsAPacket(t *testing.T) {
	o := newTestOutbox()
	largest, err := encodeChange("key", make([]byte, MaxBroadcast-3))
	suite.Must(t, err)
	o.put("key", largest)
	const (
		compound, perMessage, userByte = 2, 2, 1 // memberlist's framing
		encryption                     = 29
	)
	if got := o.take(perMessage+userByte, packetSize-compound-encryption); len(got) != 1 {
		t.Errorf("%d messages fit, want 1", len(got))
	}
}

// TestNewsIsPassedOn: once, and only if it was news.
func TestNewsIsPassedOn(t *testing.T) {
	state := newMaxima()
	d := &delegate{state: state, outbox: newTestOutbox(), log: slog.New(slog.DiscardHandler)}
	receive := func(key, json string) (passedOn bool) {
		b, err := encodeChange(key, []byte(json))
		suite.Must(t, err)
		before, _ := d.outbox.counts()
		d.NotifyMsg(b)
		clear(b) // memberlist may use it again
		after, _ := d.outbox.counts()
		return after > before
	}
	if !receive("k", `{"k":1}`) {
		t.Error("news was not passed on")
	}
	if sent := d.GetBroadcasts(3, packetSize); len(sent) != 1 || !strings.HasSuffix(string(sent[0]),
		`{"k":1}`) {
		t.Errorf("passed on %q", sent)
	}
	if receive("k2", `{"k":1}`) {
		t.Error("what was known was passed on")
	}
	if receive("k3", `nonsense`) || d.rejected.Load() != 1 {
		t.Errorf("nonsense was passed on, or not counted: %d rejected", d.rejected.Load())
	}
	d.close()
	if receive("k4", `{"k":9}`) || state.clone()["k"] != 1 || d.LocalState(false) != nil {
		t.Error("the state was used after the close")
	}
}

// badState cannot be marshalled, or is too large.
type badState struct{ size int }

func (s badState) MarshalBinary() ([]byte, error) {
	if s.size == 0 {
		return nil, fmt.Errorf("cannot")
	}
	return make([]byte, s.size), nil
}
func (badState) Merge([]byte) (bool, error) { return false, nil }

func TestStateThatCannotBeSentIsReported(t *testing.T) {
	for _, s := range []badState{{0}, {MaxState + 1}} {
		log := &syncBuffer{}
		d := &delegate{state: s, log: slog.New(slog.NewTextHandler(log, nil))}
		if d.LocalState(true) != nil || !log.has("level=ERROR") {
			t.Errorf("a state of size %d was sent, or not reported", s.size)
		}
	}
}
