package door

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// bytesCodec sends and receives bytes as they are.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "proto" }

func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

func (h *house) held() float64 { return h.door.metric("quotad_connections_held_bytes", "") }

// TestLastingHoldsNothing: messages of a stream that were delivered and answered take no memory,
// however many there are.
func TestLastingHoldsNothing(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		s := h.stream("client")
		for range 20 {
			talk(t, s, reportOf(1, 900_000))
			talk(t, s, reportOf(150, 1000))
		}
		rest(time.Second)
		if held := h.held(); held > 64<<10 {
			t.Errorf("%v bytes are counted as held after 40 reports of 200 kB and more were answered",
				held)
		}
		rest(2 * ReceiveTimeout)
		if held := h.held(); held > 1<<10 {
			t.Errorf("%v bytes are counted as held by a quiet stream", held)
		}
	})
}

// TestAttackLastingSmallMessages: many small messages do not hide what else a connection holds.
func TestAttackLastingSmallMessages(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		h.lasts.handle = func(s quotaServer) error {
			for {
				if _, err := s.Recv(); err != nil {
					return err
				}
			}
		}
		r := h.rude("attacker", 1<<16)
		defer r.done()
		r.begin(1, quotaPath)
		r.announce(1, 0, 0)
		const halves, half = 10, 60_000
		for i := range uint32(halves) {
			r.begin(3+2*i, checkPath)
			r.announce(3+2*i, 1<<20, half)
		}
		rest(time.Second)
		before := h.held()
		for range 10_000 {
			r.announce(1, 0, 0)
		}
		rest(time.Second)
		if held := h.held(); before < halves*half/2 || held < before-1000 {
			t.Errorf("%v bytes are counted as held, and then %v", before, held)
		}
	})
}

// TestAttackLastingUnread: a client that reports, and reads no answer, is disconnected.
func TestAttackLastingUnread(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		h.lasts.handle = func(s quotaServer) error {
			_, err := s.Recv()
			for err == nil {
				err = s.Send(answerTo(reportOf(100, 1000)))
			}
			return err
		}
		r := h.rude("attacker", 0)
		defer r.done()
		for i := range someBounds.Streams {
			r.begin(1+2*i, quotaPath)
			r.announce(1+2*i, 0, 0)
		}
		rest(time.Second)
		if held := h.held(); held < maxHeldByOne {
			t.Fatalf("%v bytes are held, too few to test anything", held)
		}
		rest(StallTimeout + 2*time.Second)
		if _, _, gone := r.endOf(0); gone == 0 {
			t.Error("the connection lives")
		}
		if held := h.held(); held != 0 {
			t.Errorf("%v bytes are counted as held by nobody", held)
		}
	})
}

// TestLastingUnsent: an answer that could not be sent is not counted as held.
func TestLastingUnsent(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		failed := make(chan error, 1)
		h.lasts.handle = func(s quotaServer) error {
			m, err := s.Recv()
			if err != nil {
				return err
			}
			<-s.Context().Done()
			for range 100 {
				err = s.Send(answerTo(m))
			}
			failed <- err
			return err
		}
		r := h.rude("client", 1<<16)
		defer r.done()
		r.begin(1, quotaPath)
		r.announceOf(1, string(raw("", usage("a", strings.Repeat("x", 1000)))))
		rest(time.Second)
		suite.Must(t, r.WriteRSTStream(1, http2.ErrCodeCancel))
		if err := <-failed; err == nil {
			t.Error("an answer on a stream that is over does not fail")
		}
		rest(2*ReceiveTimeout + time.Second)
		if held := h.held(); held != 0 {
			t.Errorf("%v bytes are counted as held", held)
		}
	})
}

// announceOf sends a whole message.
func (r *rude) announceOf(id uint32, message string) {
	n := len(message)
	b := append([]byte{0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, message...)
	for len(b) > 0 {
		part := min(len(b), 16<<10)
		if r.WriteData(id, false, b[:part]) != nil {
			return
		}
		b = b[part:]
	}
}

// TestAnswersToNobody: an answer for a client that has gone is not counted as held.
func TestAnswersToNobody(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		h.check = func() (*healthv1.HealthCheckResponse, error) {
			time.Sleep(time.Second)
			m := &healthv1.HealthCheckResponse{}
			m.ProtoReflect().SetUnknown(append([]byte{0x7a, 0x80, 0x80, 0x08},
				make([]byte, 1<<17)...))
			return m, nil
		}
		r := h.rude("client", 1<<16)
		r.begin(1, checkPath)
		_ = r.WriteData(1, true, []byte{0, 0, 0, 0, 0})
		rest(time.Second / 2)
		r.done()
		rest(3 * ReceiveTimeout)
		if held := h.held(); held != 0 {
			t.Errorf("%v bytes are counted as held by nobody", held)
		}
	})
}

// TestBuffersFit what they hold.
func TestBuffersFit(t *testing.T) {
	for n := 1 << 10; n <= 4<<20; n += 999 {
		b := buffers.Get(n)
		if len(*b) != n || cap(*b) > 4*n {
			t.Fatalf("a message of %d bytes has %d of %d", n, len(*b), cap(*b))
		}
		buffers.Put(b)
	}
	for n := 1 << 10; n <= 1<<20; n = 3 * n / 2 {
		data, err := codec{}.Marshal(&healthv1.HealthCheckRequest{Service: strings.Repeat("x", n)})
		suite.Must(t, err)
		if room := cap(data[0].ReadOnlyData()); len(data) != 1 || data.Len() < n || room > 4*n {
			t.Errorf("an answer of %d bytes has %d of %d", n, data.Len(), room)
		}
		data.Free()
	}
}

// TestLastingFewInHand: of large messages so many are decoded at a time, and small ones pass. When
// handlers go on, or end, others follow.
func TestLastingFewInHand(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		var inHand atomic.Int64
		goOn := make(chan bool)
		h.lasts.handle = func(s quotaServer) error {
			for {
				if _, err := s.Recv(); err != nil {
					return err
				}
				inHand.Add(1)
				if !<-goOn {
					return nil
				}
			}
		}
		const streams = decoders + 3
		for range streams {
			suite.Must(t, h.stream("client").Send(reportOf(1, countedFrom)))
		}
		if rest(time.Second); inHand.Load() != decoders {
			t.Errorf("%d large messages are in hand, at most %d are to be", inHand.Load(), decoders)
		}
		suite.Must(t, h.stream("client").Send(reportOf(1, 1)))
		if rest(time.Second); inHand.Load() != decoders+1 {
			t.Errorf("%d messages are in hand beside a small one", inHand.Load())
		}
		for i := range streams + 1 {
			goOn <- i%2 == 0
		}
		if rest(time.Second); inHand.Load() != streams+1 {
			t.Errorf("%d of %d messages came in hand", inHand.Load(), streams+1)
		}
	})
}

// TestLastingFewReceive: of streams for which much has come so many receive it at a time, and after
// a turn's time all others.
func TestLastingFewReceive(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		goOn, end := make(chan struct{}), make(chan struct{})
		h.lasts.handle = func(s quotaServer) error {
			if _, err := s.Recv(); err != nil {
				return err
			}
			if err := s.Send(&quotaAnswer{}); err != nil {
				return err
			}
			<-goOn
			_, err := s.Recv()
			<-end
			return err
		}
		const wait, size = 5, 2 * countedFrom
		var streams []quotaClient
		for range receivers + decoders + wait {
			streams = append(streams, h.stream("client"))
		}
		for range 2 {
			for _, s := range streams {
				suite.Must(t, s.Send(reportOf(1, size)))
			}
			rest(time.Second)
		}
		close(goOn)
		rest(receiveTurn / 2)
		if held := h.held(); held < wait*size || held >= (wait+1)*size {
			t.Errorf("of %d messages %v are not received, want %d", len(streams), held/size, wait)
		}
		rest(receiveTurn)
		if held := h.held(); held >= size {
			t.Errorf("%v messages are not received after %v", held/size, receiveTurn)
		}
		close(end)
	})
}
