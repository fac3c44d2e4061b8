package door

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quotad/quotad/region/base/invalid"
)

const (
	// MaxSilence is how long a stream that lasts may be without a message of its client. Then it is
	// ended, because the client is gone.
	MaxSilence = time.Minute
	// messageOverhead is the size of a further message on the wire beside its bytes: the headers of
	// a frame and of a message. Whoever sends many small ones would otherwise hide what else the
	// connection holds.
	messageOverhead = 9 + 5
	// decoders is how many messages from countedFrom bytes on may be in hand at a time, of all
	// streams that last. A message is in hand from its decoding until its stream asks for the next
	// one or answers. In memory it is many times as large as on the wire.
	decoders = 4
	// receivers is how many streams with such large messages may receive at a time while they wait
	// for one of decoders. Of a message at most streamWindow has come until its stream asks for it.
	// A turn lasts receiveTurn at most, because a client may send slowly, or another stream's bytes
	// may have come. A stream that has waited for so long receives as well.
	receivers   = 16
	receiveTurn = time.Second
)

// lasting is a stream of many messages. Each has the bounds of a call's message: its records are
// counted before it is decoded, and the connection is told what became of its bytes.
//
// If an element of a list has a text that is not UTF-8, it is decoded as an empty element. A proxy
// makes such elements of what its clients send, and one client must not end the stream for all.
type lasting struct {
	grpc.ServerStream
	ctx      context.Context
	calls    *Calls
	overhead int  // of the next message
	large    bool // it has had a message from countedFrom on

	mu     sync.Mutex
	ended  bool // the handler has returned
	inHand bool // it has one of decoders
}

func (c *Calls) lasting(ctx context.Context, s grpc.ServerStream) *lasting {
	return &lasting{ServerStream: s, ctx: ctx, calls: c, overhead: callOverhead}
}

// over ends the wait for further messages. Call it when the handler has returned, before arrived.
func (s *lasting) over() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.done()
}

// takes waits for one of decoders if a message is large.
func (s *lasting) takes(size int) error {
	if size < countedFrom {
		return nil
	}
	select {
	case s.calls.decoding <- struct{}{}:
	case <-s.ctx.Done():
		return status.FromContextError(s.ctx.Err()).Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended { // nobody would give it back
		<-s.calls.decoding
		return status.Error(codes.Canceled, "the stream is over")
	}
	s.inHand = true
	return nil
}

// done gives it back.
func (s *lasting) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inHand {
		s.inHand = false
		<-s.calls.decoding
	}
}

// heard allows MaxSilence for the next message. After that the call ends like one whose message
// does not come, even if the handler waits for a client that reads nothing. A stream without a
// timer ends before that.
func (s *lasting) heard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := arrivalOf(s.ServerStream.Context()); a.timer != nil && !s.ended {
		a.timer.Reset(MaxSilence)
	}
}

// Context implements grpc.ServerStream.
func (s *lasting) Context() context.Context { return s.ctx }

// RecvMsg implements grpc.ServerStream. Only one goroutine may call it, as with every stream.
func (s *lasting) RecvMsg(into any) error {
	s.done()
	var b body
	defer b.free()
	if err := s.receive(&b); err != nil {
		return err
	}
	m, ok := into.(proto.Message)
	if !ok {
		return status.Error(codes.Internal, "the stream's message is no protobuf message")
	}
	proto.Reset(m)
	bad := decode(b.bytes(), m, s.calls.bounds.Records)
	if bad != nil && bad.Name != WholeMessage {
		bad = decode(emptied(b.bytes(), m.ProtoReflect().Descriptor()), m, s.calls.bounds.Records)
	}
	if bad != nil {
		return s.calls.refuse(bad)
	}
	return nil
}

// receive receives a message that may be decoded now.
func (s *lasting) receive(b *body) error {
	on := connOf(s.ServerStream.Context())
	defer s.turn(on)()
	if err := s.ServerStream.RecvMsg(b); err != nil {
		return err
	}
	s.heard()
	if on != nil {
		on.delivered(len(b.bytes()) + s.overhead)
	}
	s.overhead = messageOverhead
	s.large = s.large || len(b.bytes()) >= countedFrom
	return s.takes(len(b.bytes()))
}

// turn waits for one of receivers if the stream has large messages and much has come on its
// connection. It returns what gives it back.
func (s *lasting) turn(on *conn) (over func()) {
	none := func() {}
	if on == nil || !s.large || on.undelivered() < countedFrom {
		return none
	}
	late := time.NewTimer(receiveTurn)
	defer late.Stop()
	select {
	case s.calls.receiving <- struct{}{}:
		done := sync.OnceFunc(func() { <-s.calls.receiving })
		ends := time.AfterFunc(receiveTurn, done)
		return func() {
			ends.Stop()
			done()
		}
	case <-late.C:
	case <-s.ctx.Done():
	}
	return none
}

// emptied returns a message without the elements of lists that have a text which is not UTF-8: each
// of them becomes an empty element.
func emptied(raw []byte, of protoreflect.MessageDescriptor) (all []byte) {
	for len(raw) > 0 {
		number, kind, n := protowire.ConsumeField(raw)
		if n < 0 {
			return append(all, raw...)
		}
		var bad *invalid.Field
		if f := of.Fields().ByNumber(number); f != nil && f.IsList() && f.Message() != nil {
			eachRecord(raw[:n], of, func(_ protoreflect.FieldDescriptor, value []byte) bool {
				bad = notText(value, f.Message(), "", maxNested)
				return false
			})
		}
		if bad != nil {
			all = protowire.AppendBytes(protowire.AppendTag(all, number, kind), nil)
		} else {
			all = append(all, raw[:n]...)
		}
		raw = raw[n:]
	}
	return all
}

// SendMsg implements grpc.ServerStream.
func (s *lasting) SendMsg(m any) error {
	s.done()
	on, size := connOf(s.ServerStream.Context()), 0
	if message, ok := m.(proto.Message); ok && on != nil {
		size = proto.Size(message)
		on.answered(size)
	}
	err := s.ServerStream.SendMsg(m)
	if err != nil && on != nil {
		on.answered(-size) // it is not written
	}
	return err
}
