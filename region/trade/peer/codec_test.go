package peer

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/suite"
	peerv1 "github.com/quotad/quotad/proto/peer/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/store"
)

// onTheWire encodes a message and decodes it into another.
func onTheWire(t rapid.TB, from, to proto.Message) {
	b, err := proto.Marshal(from)
	suite.Must(t, err)
	suite.Must(t, proto.Unmarshal(b, to))
}

// TestMessageRoundTrip: every field of a message arrives. Fields are drawn by reflection, so that
// one added to exchange.Message and forgotten here is found.
func TestMessageRoundTrip(t *testing.T) {
	messages := rapid.Make[exchange.Message]()
	suite.Check(t, func(t *rapid.T) {
		want := messages.Draw(t, "message")
		want.Documents = drawDocuments(t)
		if want.Asks == nil {
			want.Asks = []exchange.Ask{}
		}
		for i := range want.Asks { // a bucket id is any bytes
			want.Asks[i].Bucket = string(rapid.SliceOf(rapid.Byte()).Draw(t, "bucket"))
		}
		var p peerv1.ExchangeRequest
		onTheWire(t, messageToProto(want), &p)
		if got := messageFromProto(&p); !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
}

// drawDocuments draws documents as a region may tell them, nil for none.
func drawDocuments(t *rapid.T) (all []exchange.Acknowledged) {
	for range rapid.IntRange(0, MaxDocuments).Draw(t, "documents") {
		d := rapid.Make[exchange.Acknowledged]().Draw(t, "document")
		d.Version, d.At, d.Fenced = max(d.Version&(1<<51-1), 1), d.At&(1<<51-1), drawFences(t)
		all = append(all, d)
	}
	return all
}

// drawFences draws the fences of a document as a region may tell them, nil for none.
func drawFences(t *rapid.T) (all []exchange.Fence) {
	for range rapid.IntRange(0, 3).Draw(t, "fences") {
		all = append(all, exchange.Fence{Region: rapid.StringMatching("[a-z0-9-]{1,63}").Draw(t, "region"),
			Life: rapid.Int64Range(0, maxLife).Draw(t, "life")})
	}
	return all
}

// TestWhatCannotBeAFenceIsPassedOver, and more than a document can have is not read.
func TestWhatCannotBeAFenceIsPassedOver(t *testing.T) {
	good := &peerv1.Fence{Region: "us", Life: 1}
	for name, bad := range map[string]*peerv1.Fence{"life below 0": {Region: "us", Life: -1},
		"life too high": {Region: "us", Life: maxLife + 1}, "a long name": {Region: strings.Repeat("x", 64)}} {
		if got := fencesFromProto([]*peerv1.Fence{bad, good}); len(got) != 1 || got[0].Region != "us" {
			t.Errorf("%s: read %v", name, got)
		}
	}
	if got := fencesFromProto(slices.Repeat([]*peerv1.Fence{good}, maxFenced+1)); len(got) != maxFenced {
		t.Errorf("%d read", len(got))
	}
}

// TestWhatCannotBeADocumentIsPassedOver: a peer can neither have more documents read than are open
// at a time, nor ones without a version, a whole digest or a time.
func TestWhatCannotBeADocumentIsPassedOver(t *testing.T) {
	digest := make([]byte, 32)
	good := &peerv1.Acknowledged{Version: 1, Digest: digest, AtUs: 0}
	for name, bad := range map[string]*peerv1.Acknowledged{
		"nothing":        nil,
		"no version":     {Digest: digest},
		"a short digest": {Version: 1, Digest: digest[:31]},
		"before 1970":    {Version: 1, Digest: digest, AtUs: -1},
	} {
		if got := documentsFromProto([]*peerv1.Acknowledged{bad, good}); len(got) != 1 {
			t.Errorf("%s: %v", name, got)
		}
	}
	many := make([]*peerv1.Acknowledged, MaxDocuments+1)
	for i := range many {
		many[i] = good
	}
	if got := documentsFromProto(many); len(got) != MaxDocuments {
		t.Errorf("%d documents of %d were read", len(got), len(many))
	}
}

// TestReplyRoundTrip: every field of a reply arrives.
func TestReplyRoundTrip(t *testing.T) {
	replies := rapid.Make[exchange.Reply]()
	suite.Check(t, func(t *rapid.T) {
		want := replies.Draw(t, "reply")
		want.Documents = drawDocuments(t)
		if want.Grants == nil {
			want.Grants = []exchange.Grant{}
		}
		for i := range want.Grants {
			want.Grants[i].Refusal %= exchange.RefusedStore + 1
		}
		var p peerv1.ExchangeResponse
		onTheWire(t, replyToProto(want), &p)
		if got := replyFromProto(&p); !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
}

// TestRefusalsHaveOneNumber: the refusals of package exchange and those of the protocol are the
// same.
func TestRefusalsHaveOneNumber(t *testing.T) {
	want := map[int32]string{0: "REFUSAL_UNSPECIFIED"}
	for r := exchange.NotRefused + 1; r.String() != "unknown" || r == exchange.RefusedUnknown; r++ {
		want[int32(r)] = "REFUSAL_" + strings.ToUpper(r.String())
	}
	if !reflect.DeepEqual(peerv1.Refusal_name, want) {
		t.Errorf("the protocol has %v, package exchange %v", peerv1.Refusal_name, want)
	}
}

// TestUnknownRefusal: a refusal that this version does not know still is one.
func TestUnknownRefusal(t *testing.T) {
	for _, r := range []peerv1.Refusal{-1, peerv1.Refusal(exchange.RefusedStore) + 1, 256, 257,
		1<<31 - 1, -1 << 31} {
		var p peerv1.ExchangeResponse
		onTheWire(t, &peerv1.ExchangeResponse{Grants: []*peerv1.Grant{{Refusal: r, Lent: 5}}}, &p)
		if got := replyFromProto(&p).Grants[0].Refusal; got != exchange.RefusedStore {
			t.Errorf("refusal %d is read as %v, want %v", r, got, exchange.RefusedStore)
		}
	}
}

// TestBurstIsNotUnits: burst has fields of its own on the wire, and a peer that knows none lends
// and asks for none.
func TestBurstIsNotUnits(t *testing.T) {
	ask := exchange.Ask{Bucket: "b", Cell: 1, Returned: 2, Lent: 3, Burst: 4}
	grant := exchange.Grant{Cell: 1, Returned: 2, Lent: 3, Spare: 4, Retry: 5, Burst: 6,
		SpareBurst: 7}
	m := messageToProto(exchange.Message{Asks: []exchange.Ask{ask}})
	r := replyToProto(exchange.Reply{Grants: []exchange.Grant{grant}})
	m.Asks[0].Burst, r.Grants[0].Burst, r.Grants[0].SpareBurst = 0, 0, 0
	var oldAsk peerv1.ExchangeRequest
	var oldGrant peerv1.ExchangeResponse
	onTheWire(t, m, &oldAsk)
	onTheWire(t, r, &oldGrant)
	ask.Burst, grant.Burst, grant.SpareBurst = 0, 0, 0
	if got := messageFromProto(&oldAsk).Asks[0]; got != ask {
		t.Errorf("an ask without burst is read as %+v, want %+v", got, ask)
	}
	if got := replyFromProto(&oldGrant).Grants[0]; got != grant {
		t.Errorf("a grant without burst is read as %+v, want %+v", got, grant)
	}
}

// TestConfirmationRoundTrip: what is to be confirmed arrives as it was sent, and none that is larger than
// a store's.
func TestConfirmationRoundTrip(t *testing.T) {
	c := &store.Confirmation{Generation: 7, Epoch: "1-a", Begun: []quantity.StoreTime{1, 2}, Replids: []string{"r1", "r2"},
		Nodes: map[string][]quantity.StoreTime{"n1": {3, 4}, "n2": {5, 6}}}
	if got, err := confirmationFromProto(confirmationToProto(c)); err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("%+v became %+v, %v", c, got, err)
	}
	if got, err := confirmationFromProto(confirmationToProto(nil)); got != nil || err != nil {
		t.Errorf("nothing became %+v, %v", got, err)
	}
	for name, p := range map[string]*peerv1.Confirmation{
		"nodes":  {Nodes: make([]*peerv1.NodeTimes, algorithms.MaxNodes+1)},
		"shards": {Begun: make([]int64, maxShards+1)}, "servers": {Replids: make([]string, maxShards+1)},
	} {
		if got, err := confirmationFromProto(p); err == nil {
			t.Errorf("too many %s: %+v", name, got)
		}
	}
}
