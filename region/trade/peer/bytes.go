package peer

import (
	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/allocator/exchange"
	peerv1 "github.com/quotad/quotad/proto/peer/v1"
)

// These functions read and write the messages between regions for a simulator, which carries them
// without gRPC. They ignore fields that this version does not know.

// MarshalMessage returns the bytes of a message.
func MarshalMessage(m exchange.Message) ([]byte, error) { return proto.Marshal(messageToProto(m)) }

// UnmarshalMessage reads the bytes of a message.
func UnmarshalMessage(b []byte) (exchange.Message, error) {
	p := &peerv1.ExchangeRequest{}
	err := proto.Unmarshal(b, p)
	return messageFromProto(p), err
}

// MarshalReply returns the bytes of the reply to a message.
func MarshalReply(r exchange.Reply) ([]byte, error) { return proto.Marshal(replyToProto(r)) }

// UnmarshalReply reads the bytes of the reply to a message.
func UnmarshalReply(b []byte) (exchange.Reply, error) {
	p := &peerv1.ExchangeResponse{}
	err := proto.Unmarshal(b, p)
	return replyFromProto(p), err
}

// MarshalQuestion returns the bytes of a question.
func MarshalQuestion(q exchange.Question) ([]byte, error) {
	return proto.Marshal(questionToProto(q))
}

// UnmarshalQuestion reads the bytes of a question.
func UnmarshalQuestion(b []byte) (exchange.Question, error) {
	p := &peerv1.RecallRequest{}
	err := proto.Unmarshal(b, p)
	return questionFromProto(p), err
}

// MarshalTestimonies returns the bytes of the answer to a question.
func MarshalTestimonies(t exchange.Testimonies) ([]byte, error) {
	return proto.Marshal(testimoniesToProto(t))
}

// UnmarshalTestimonies reads the bytes of the answer to a question. A testimony that is missing
// counts as refused.
func UnmarshalTestimonies(b []byte, q exchange.Question) (exchange.Testimonies, error) {
	p := &peerv1.RecallResponse{}
	err := proto.Unmarshal(b, p)
	return testimoniesFromProto(p, q), err
}
