package door

import (
	"context"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/chaos/lab/suite"
)

var roomy = Limits{Connections: 100, PerAddress: 100}

// TestAttackHalfSentMessages: a message that does not arrive ends its call, however it begins.
func TestAttackHalfSentMessages(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		r := h.rude("client", 1<<16)
		defer r.done()
		r.begin(1, checkPath) // no message at all
		r.begin(3, checkPath)
		r.announce(3, 1<<20, 1000)
		r.begin(5, checkPath)
		// This message is complete, and its call goes on.
		r.announce(5, 10, 10)
		r.begin(7, "/grpc.health.v1.Health/Watch")
		r.announce(7, 10, 0)
		r.begin(9, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
		r.begin(11, checkPath)
		if err := r.WriteData(11, false, []byte{0, 0, 0, 1, 0}); err != nil {
			t.Fatal(err)
		}
		for range 20 { // byte by byte
			rest(500 * time.Millisecond)
			if how, _, _ := r.endOf(11); how == "" {
				_ = r.WriteData(11, false, []byte{0})
			}
		}
		for id := uint32(1); id <= 11; id += 2 {
			how, after, _ := r.endOf(id)
			if how != "status 4" || after < ReceiveTimeout || after > ReceiveTimeout+time.Second {
				t.Errorf("stream %d ended with %q after %v, want DEADLINE_EXCEEDED after %v", id,
					how, after, ReceiveTimeout)
			}
		}
		if _, _, gone := r.endOf(0); gone != 0 {
			t.Errorf("the connection ended after %v", gone)
		}
		if got := h.door.metric("quotad_calls_late_total", ""); got != 6 {
			t.Errorf("%v calls are counted as late, want 6", got)
		}
		rest(2 * ReceiveTimeout)
		if held := h.door.metric("quotad_connections_held_bytes", ""); held != 0 {
			t.Errorf("%v bytes are counted as held after all calls ended", held)
		}
	})
}

// TestHalfSentWithADeadline: a call whose message does not arrive ends by its caller's deadline, but
// no later than without one.
func TestHalfSentWithADeadline(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		r := h.rude("client", 1<<16)
		defer r.done()
		for i, timeout := range []string{"2S", "5S", "6S", "1H"} {
			id := uint32(2*i + 1)
			r.begin(id, checkPath, hpack.HeaderField{Name: "grpc-timeout", Value: timeout})
			r.announce(id, 1000, 10)
		}
		rest(2 * ReceiveTimeout)
		for id, want := range map[uint32]time.Duration{1: 2 * time.Second, 3: ReceiveTimeout,
			5: ReceiveTimeout, 7: ReceiveTimeout} {
			how, after, _ := r.endOf(id)
			// At its caller's deadline gRPC itself may reset a stream.
			told := how == "status 4" || id <= 3 && how == "CANCEL"
			if !told || after < want || after > want+time.Second {
				t.Errorf("stream %d ended with %q after %v, want DEADLINE_EXCEEDED after %v", id,
					how, after, want)
			}
		}
		if got := h.door.metric("quotad_calls_late_total", ""); got != 2 {
			t.Errorf("%v calls are counted as late, want the 2 whose callers waited on", got)
		}
		if _, _, gone := r.endOf(0); gone != 0 {
			t.Errorf("the connection ended after %v", gone)
		}
	})
}

// TestWatchersStay: the time limit for a message is not a limit for the call.
func TestWatchersStay(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		watch, err := healthv1.NewHealthClient(h.client("client")).Watch(t.Context(),
			&healthv1.HealthCheckRequest{})
		suite.Must(t, err)
		if _, err := watch.Recv(); err != nil {
			t.Fatal(err)
		}
		rest(time.Hour)
		h.SetServingStatus("", healthv1.HealthCheckResponse_NOT_SERVING)
		if got, err := watch.Recv(); err != nil ||
			got.Status != healthv1.HealthCheckResponse_NOT_SERVING {
			t.Errorf("after an hour a watcher sees %v, %v", got, err)
		}
	})
}

// TestSlowHandlers: a call whose message has arrived may take longer than a message may.
func TestSlowHandlers(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		h.check = func() (*healthv1.HealthCheckResponse, error) {
			time.Sleep(3 * ReceiveTimeout)
			return &healthv1.HealthCheckResponse{}, nil
		}
		if _, err := healthv1.NewHealthClient(h.client("client")).Check(t.Context(),
			&healthv1.HealthCheckRequest{}); err != nil {
			t.Error(err)
		}
	})
}

// TestReflectionEnds: a reflection call ends in time, even if its client stays.
func TestReflectionEnds(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		start := time.Now()
		stream, err := reflectionv1.NewServerReflectionClient(h.client(
			"client")).ServerReflectionInfo(t.Context())
		suite.Must(t, err)
		q := &reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}
		suite.Must(t, stream.Send(q))
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		if _, err = stream.Recv(); status.Code(err) != codes.DeadlineExceeded ||
			time.Since(start) > ReceiveTimeout+time.Second {
			t.Errorf("ended with %v after %v", err, time.Since(start))
		}
	})
}

// TestAttackHeaders: headers beyond their bound end the call, and far beyond it the connection,
// before they are kept.
func TestAttackHeaders(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		large := headers(checkPath,
			hpack.HeaderField{Name: "x", Value: strings.Repeat("x", maxHeaderBytes)})
		r := h.rude("client", 1<<16)
		defer r.done()
		if err := r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: large,
			EndHeaders: true, EndStream: true}); err != nil {
			t.Fatal(err)
		}
		rest(time.Second)
		if how, _, _ := r.endOf(1); how != "FRAME_SIZE_ERROR" {
			t.Errorf("a call with too large headers ended with %q", how)
		}
		endless := h.rude("client", 1<<16)
		defer endless.done()
		if err := endless.WriteHeaders(http2.HeadersFrameParam{StreamID: 1,
			BlockFragment: headers(checkPath)}); err != nil {
			t.Fatal(err)
		}
		field := hpack.AppendHuffmanString(nil, strings.Repeat("x", 12000))
		// 16 MB, if the node accepted them
		for range 1000 {
			part := append([]byte{0x00, 0x01, 'y', 0x80 | 0x7f}, varint(uint64(len(field)-127))...)
			if endless.WriteContinuation(1, false, append(part, field...)) != nil {
				break
			}
		}
		rest(time.Second)
		if _, _, gone := endless.endOf(0); gone == 0 {
			t.Error("a connection that sends headers without end lives")
		}
	})
}

// varint is HPACK's encoding of a length beyond its prefix.
func varint(n uint64) (b []byte) {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

// TestAttackIdleConnections: a client that does nothing keeps no connection, in any of its states.
func TestAttackIdleConnections(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		silent, err := h.net.Host("client").DialContext(t.Context(), "tcp", h.at)
		suite.Must(t, err)
		defer silent.Close()
		idle := h.rude("client", 1<<16)
		defer idle.done()
		rest(handshakeTimeout + time.Second)
		if open := h.door.metric("quotad_connections", ""); open != 1 {
			t.Errorf("%v connections are open, of which one has said nothing for %v", open,
				handshakeTimeout)
		}
		rest(someBounds.Alive.MaxConnectionIdle + 10*time.Second)
		if open := h.door.metric("quotad_connections", ""); open != 0 {
			t.Errorf("%v connections are open after %v without a call", open,
				someBounds.Alive.MaxConnectionIdle)
		}
	})
}

// TestAttackManyHalfSent: what half-sent messages hold is bounded, for one connection and for all.
// Other clients are still served.
func TestAttackManyHalfSent(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		const attackers = 20
		var all []*rude
		for range attackers {
			r := h.rude("attacker", 1<<16)
			defer r.done()
			r.read.Go(func() {
				for id := uint32(1); id < 2*someBounds.Streams; id += 2 {
					r.begin(id, checkPath)
					// as much as flow control lets through at first
					r.announce(id, 1<<20, 1<<16-100)
				}
			})
			all = append(all, r)
		}
		rest(time.Second)
		// Each may read once more while it holds little.
		const slack = attackers * 2 * alwaysHeld
		if held := h.door.metric("quotad_connections_held_bytes", ""); held > 2*maxHeldByAll+
			slack || held < maxHeldByAll {
			t.Errorf("%v bytes are held, of which %d may be", held, 2*maxHeldByAll)
		}
		if _, err := healthv1.NewHealthClient(h.client("another")).Check(t.Context(),
			&healthv1.HealthCheckRequest{}); err != nil {
			t.Errorf("another client is answered %v", err)
		}
		rest(10 * ReceiveTimeout)
		if held := h.door.metric("quotad_connections_held_bytes", ""); held > maxHeldByAll/4 {
			t.Errorf("%v bytes are held when all calls must have ended", held)
		}
		if how, _, gone := all[0].endOf(1); how != "status 4" && gone == 0 {
			t.Errorf("the first call ended with %q", how)
		}
	})
}

// TestAttackUnreadAnswers: the node stops reading from a client that does not read its answers, and
// then disconnects it.
func TestAttackUnreadAnswers(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		h.check = func() (*healthv1.HealthCheckResponse, error) {
			m := &healthv1.HealthCheckResponse{}
			m.ProtoReflect().SetUnknown(append([]byte{0x7a, 0x80, 0x80, 0x08},
				make([]byte, 1<<17)...))
			return m, nil
		}
		r := h.rude("attacker", 0)
		defer r.done()
		for id := uint32(1); id < 2*someBounds.Streams; id += 2 {
			r.begin(id, checkPath)
			_ = r.WriteData(id, true, []byte{0, 0, 0, 0, 0})
		}
		rest(time.Second)
		if held := h.door.metric("quotad_connections_held_bytes", ""); held < maxHeldByOne {
			t.Fatalf("%v bytes are held, too few to test anything", held)
		}
		rest(StallTimeout + time.Second)
		if _, _, gone := r.endOf(0); gone == 0 {
			t.Error("the connection lives")
		}
		if got := h.door.metric("quotad_connections_refused_total", stalledConnection); got != 1 {
			t.Errorf("%v connections are counted as stalled", got)
		}
		if held := h.door.metric("quotad_connections_held_bytes", ""); held != 0 {
			t.Errorf("%v bytes are counted as held by nobody", held)
		}
	})
}

// TestBusyConnectionsHoldNothing: messages that were delivered and answered take no memory, however
// many there are.
func TestBusyConnectionsHoldNothing(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		client := healthv1.NewHealthClient(h.client("client"))
		q := &healthv1.HealthCheckRequest{Service: strings.Repeat("s", 900_000)}
		for range 20 {
			if _, err := client.Check(t.Context(), q); status.Code(err) != codes.NotFound {
				t.Fatal(err)
			}
		}
		if held := h.door.metric("quotad_connections_held_bytes", ""); held > 64<<10 {
			t.Errorf("%v bytes are counted as held after 20 calls of 900 kB were answered", held)
		}
	})
}

// TestAttackManyWatches: a connection has maxWatches watches of health at a time. They are counted
// among what it holds, and end with their calls or the connection, not by a clock.
func TestAttackManyWatches(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		conn := h.client("client")
		watch := func() (context.CancelFunc, error) {
			ctx, cancel := context.WithCancel(t.Context())
			s, err := healthv1.NewHealthClient(conn).Watch(ctx, &healthv1.HealthCheckRequest{})
			if err == nil {
				_, err = s.Recv()
			}
			return cancel, err
		}
		var ends []context.CancelFunc
		for i := range 20 {
			end, err := watch()
			ends = append(ends, end)
			if want := i >= maxWatches; (status.Code(err) == codes.ResourceExhausted) != want {
				t.Errorf("watch %d: %v", i, err)
			}
		}
		rest(time.Hour)
		const some = 1 << 10 // bytes of frames that are forgotten after a while
		if held := h.door.metric("quotad_connections_held_bytes", ""); held < maxWatches*watchBytes ||
			held > maxWatches*watchBytes+some {
			t.Errorf("%v bytes are held after an hour, want %d for %d watches", held,
				maxWatches*watchBytes, maxWatches)
		}
		if got := h.door.metric("quotad_watches_refused_total", ""); got != 20-maxWatches {
			t.Errorf("%v watches are counted as refused", got)
		}
		ends[0]()
		rest(time.Second)
		end, err := watch()
		ends = append(ends, end)
		if err != nil {
			t.Errorf("after the end of one: %v", err)
		}
		for _, end := range ends {
			end()
		}
		rest(time.Second)
		if held := h.door.metric("quotad_connections_held_bytes", ""); held > some {
			t.Errorf("%v bytes are held by nobody", held)
		}
	})
}
