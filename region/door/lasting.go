package door

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// MaxSilence is how long a stream that lasts may be without a message of its client. Then it is
// ended, because the client is gone.
const MaxSilence = time.Minute

// lasting is a stream of many messages, each with the bounds of a call's message: it is decoded here
// only after its records were counted, and the connection is told what became of its bytes.
type lasting struct {
	grpc.ServerStream
	ctx     context.Context // ends when the client has been silent for too long
	end     context.CancelFunc
	silence *time.Timer // ends it
	calls   *Calls
}

func (c *Calls) lasting(ctx context.Context, s grpc.ServerStream) *lasting {
	l := &lasting{ServerStream: s, calls: c}
	l.ctx, l.end = context.WithCancel(ctx)
	l.silence = time.AfterFunc(MaxSilence, l.end)
	return l
}

// over frees what the stream holds. Call it when its handler has returned.
func (s *lasting) over() {
	s.silence.Stop()
	s.end()
}

// Context implements grpc.ServerStream.
func (s *lasting) Context() context.Context { return s.ctx }

// RecvMsg implements grpc.ServerStream. Only one goroutine may call it, as with every stream.
func (s *lasting) RecvMsg(into any) error {
	var b body
	defer b.free()
	if err := s.ServerStream.RecvMsg(&b); err != nil {
		return err
	}
	arrived(s.ServerStream.Context())
	s.silence.Reset(MaxSilence)
	if on := connOf(s.ServerStream.Context()); on != nil {
		on.delivered(len(b.bytes()) + callOverhead)
	}
	m, ok := into.(proto.Message)
	if !ok {
		return status.Error(codes.Internal, "the stream's message is no protobuf message")
	}
	proto.Reset(m)
	if bad := decode(b.bytes(), m, s.calls.bounds.Records); bad != nil {
		return s.calls.refuse(*bad)
	}
	return nil
}

// SendMsg implements grpc.ServerStream.
func (s *lasting) SendMsg(m any) error {
	on := connOf(s.ServerStream.Context())
	if message, ok := m.(proto.Message); ok && on != nil {
		on.answered(proto.Size(message))
	}
	return s.ServerStream.SendMsg(m)
}
