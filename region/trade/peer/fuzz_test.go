package peer

import (
	"reflect"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// FuzzMessages: what comes from another region is read or refused, and what was read is written and
// read as the same.
func FuzzMessages(f *testing.F) {
	add := func(b []byte, err error) {
		suite.Must(f, err)
		f.Add(b)
	}
	add(MarshalMessage(exchange.Message{From: "us", Node: "n1", Generation: 1,
		Documents: []exchange.Acknowledged{{Version: 3, Digest: [32]byte{1}, At: 1 << 50}},
		Asks:      []exchange.Ask{{Bucket: "\xffb", Agreed: 7, Cell: -1, Lent: 1 << 62}}}))
	add(MarshalReply(exchange.Reply{From: "us",
		Grants: []exchange.Grant{{Refusal: exchange.RefusedStore, Lent: -1}}}))
	add(MarshalQuestion(exchange.Question{From: "us", Generation: 1 << 51,
		Buckets: []exchange.Doubt{{Bucket: "b", From: quantity.Cell(-1 << 63), To: 1<<63 - 1}}}))
	add(MarshalTestimonies(exchange.Testimonies{From: "us",
		All: []exchange.Testimony{{Now: 1, Use: algorithms.Use{Units: 1},
			Rows: []algorithms.RememberedRow{{Peer: "eu", Cell: 1, Lent: 2}}}}}))
	question := exchange.Question{Buckets: []exchange.Doubt{{Bucket: "a"}, {Bucket: "b"}}}
	f.Fuzz(func(t *testing.T, b []byte) {
		again(t, b, MarshalMessage, UnmarshalMessage)
		again(t, b, MarshalReply, UnmarshalReply)
		again(t, b, MarshalQuestion, UnmarshalQuestion)
		of := func(b []byte) (exchange.Testimonies,
			error) {
			return UnmarshalTestimonies(b, question)
		}
		again(t, b, MarshalTestimonies, of)
		if a, _ := of(b); len(a.All) != len(question.Buckets) {
			t.Errorf("%d testimonies of %d buckets", len(a.All), len(question.Buckets))
		}
		if r, err := UnmarshalReply(b); err == nil {
			for _, g := range r.Grants {
				if g.Refusal > exchange.RefusedStore {
					t.Errorf("refusal %d is none", g.Refusal)
				}
			}
		}
	})
}

func again[M any](t *testing.T, b []byte, write func(M) ([]byte, error),
	read func([]byte) (M, error)) {
	t.Helper()
	m, err := read(b)
	if err != nil {
		return
	}
	written, err := write(m)
	if err != nil {
		t.Fatalf("%+v cannot be written: %v", m, err)
	}
	if same, err := read(written); err != nil || !reflect.DeepEqual(m, same) {
		t.Fatalf("%+v is read again as %+v, %v", m, same, err)
	}
}
