package peer

import (
	"context"
	"errors"
	"net"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/copies"
	"github.com/quotad/quotad/region/memory/journal"
)

// TestCopy: a part of a copy arrives whole, also the largest there is. What is too much or cannot be is
// refused before anybody keeps it, and so is a part in another name.
func TestCopy(t *testing.T) {
	a := newAuthority(t)
	var heard copies.Part
	var by Identity
	var fails error
	s := NewServer(Handlers{Copy: func(_ context.Context, from Identity, p copies.Part) (uint64, error) {
		by, heard = from, p
		return p.Number + 1, fails
	}}, a.issue(us1, nil))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	suite.Must(t, err)
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	c := NewClient((&net.Dialer{}).DialContext, a.issue(Identity{"us", "n2"}, nil))
	defer c.Close()
	tell := func(p copies.Part) (uint64, error) { return c.Copy(t.Context(), "us", l.Addr().String(), p) }

	most := copies.Part{Region: "us", Node: "n2", Life: 3, Number: 1 << 60, Since: 1, Until: 1 << 50, Read: 1 << 49}
	for range copies.MaxUses {
		most.Uses = append(most.Uses, copies.Use{Bucket: strings.Repeat("\xff", journal.MaxBucketBytes), Cell: 1 << 50,
			Units: journal.MaxUnits, At: 1 << 50, Until: 1 << 50, Generation: 1<<64 - 1})
	}
	for _, p := range []copies.Part{{Region: "us", Node: "n2"}, most} {
		if next, err := tell(p); err != nil || next != p.Number+1 || !reflect.DeepEqual(heard, p) || by != (Identity{"us", "n2"}) {
			t.Errorf("a part of %d uses arrives as %d of %v: next %d, %v", len(p.Uses), len(heard.Uses), by, next, err)
		}
	}

	heard = copies.Part{}
	good := copies.Use{Bucket: "b", Cell: 1, Units: 1, At: 1}
	with := func(change func(*copies.Use)) copies.Part {
		bad := good
		change(&bad)
		return copies.Part{Region: "us", Node: "n2", Uses: []copies.Use{good, bad}}
	}
	tooMany := most
	tooMany.Uses = append(tooMany.Uses, good)
	for name, p := range map[string]copies.Part{
		"too many uses": tooMany,
		"no bucket":     with(func(u *copies.Use) { u.Bucket = "" }),
		"a long bucket": with(func(u *copies.Use) { u.Bucket = strings.Repeat("b", journal.MaxBucketBytes+1) }),
		"less than 0":   with(func(u *copies.Use) { u.Units = -1 }),
		"too much":      with(func(u *copies.Use) { u.Units = journal.MaxUnits + 1 }),
		"a cell before": with(func(u *copies.Use) { u.Cell = -1 }),
		"no time":       with(func(u *copies.Use) { u.At = quantity.StoreTime(journal.MaxUnits + 1) }),
	} {
		if _, err := tell(p); status.Code(err) != codes.InvalidArgument || heard.Node != "" {
			t.Errorf("%s: %v, heard of %q", name, err, heard.Node)
		}
	}
	if _, err := tell(copies.Part{Region: "us", Node: "n3"}); status.Code(err) != codes.PermissionDenied || heard.Node != "" {
		t.Errorf("in another name: %v", err)
	}
	fails = errors.New("not mine")
	if _, err := tell(copies.Part{Region: "us", Node: "n2"}); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "not mine") {
		t.Errorf("a part that nobody keeps: %v", err)
	}
	suite.Eventually(t, "the server to count", func() bool { return s.Refused().OtherNode == 1 && s.Refused().TooManyAsks == 1 })
}

// TestTestimoniesCarryCopies: an answer says of which nodes it has copies.
func TestTestimoniesCarryCopies(t *testing.T) {
	a := exchange.Testimonies{From: "us", Node: "n1", ForGeneration: 7, Heard: []exchange.HeardOf{{At: 9}, {At: 8, Unsure: true}}, Copies: []exchange.Copied{{Node: "n2", Since: 3, Until: 1 << 50, Rows: true, Read: 7, First: 2, Answered: 5}, {Node: "n3"}}}
	if got := testimoniesFromProto(testimoniesToProto(a), exchange.Question{}); !reflect.DeepEqual(got, a) {
		t.Errorf("%+v arrives as %+v", a, got)
	}
}
