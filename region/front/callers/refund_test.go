package callers

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/suite"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/decide/receipts"
	"github.com/quotad/quotad/region/front/wire"
)

// partly is a refund of which one charge could not be given back.
func partly() receipts.Refunded {
	return receipts.Refunded{Charges: []receipts.RefundedCharge{{Limit: "account-minute", Units: 2},
		{Limit: "queue", Reason: "turn promised"}}}
}

func again(r receipts.Refunded) receipts.Refunded {
	r.Repeated = true
	return r
}

const aRefund = `{"receipt":"` + fronts.Receipt + `"}`

// errElsewhere is as the error with which a node refuses the receipt of another region.
var errElsewhere = fmt.Errorf("%w: it is of region %q: send it there", receipts.ErrRefused, "eu-west")

func TestRefund(t *testing.T) {
	const ok = "200\n" + fronts.JSONType
	none := fronts.Problem(400, "", "receipt: is none; send the receipt of a decision as it was given",
		`,"field":"receipt"`)
	for _, c := range []struct {
		name     string
		body     string
		refunded receipts.Refunded
		err      error
		want     string
	}{
		{"given back", aRefund, partly(), nil,
			ok + `{"repeated":false,"refunded":[{"limit":"account-minute","units":2},{"limit":"queue","units":0,"reason":"turn promised"}]}`},
		{"given back before", aRefund, again(partly()), nil,
			ok + `{"repeated":true,"refunded":[{"limit":"account-minute","units":2},{"limit":"queue","units":0,"reason":"turn promised"}]}`},
		{"of no charges", aRefund, receipts.Refunded{}, nil, ok + `{"repeated":false,"refunded":[]}`},
		{"no receipt", `{"receipt":"other"}`, partly(), nil, none},
		{"nothing", `{}`, partly(), nil, none},
		{"another field", `{"receipt":"-Rc_9","domain":"api"}`, partly(), nil,
			fronts.Problem(400, "", `body: has the unknown field \"domain\"; there is only receipt`,
				`,"field":"body"`)},
		{"of a boolean", `{"receipt":true}`, partly(), nil,
			fronts.Problem(400, "", "receipt: must be a JSON string", `,"field":"receipt"`)},
		{"too large", `{"receipt":"` + strings.Repeat("a", wire.MaxBodyBytes) + `"}`, partly(), nil,
			fronts.Problem(413, "", "the body is larger than 65536 bytes", "")},
		{"of another region", aRefund, partly(), errElsewhere,
			fronts.Problem(409, "", strings.ReplaceAll(errElsewhere.Error(), `"`, `\"`), "")},
		{"of a store that fails", aRefund, partly(), errors.New("refund: unknown store"),
			fronts.Problem(503, "", "refund: unknown store", "")},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, &fronts.Node{GivenBack: c.refunded, Err: c.err}, fronts.Quiet())
			fronts.Compare(t, fronts.Exchange(s.http.Handler, "POST", "/v1/refund", "application/json", c.body), c.want)
		})
	}
	t.Run("of a form", func(t *testing.T) {
		s := newServer(t, &fronts.Node{}, fronts.Quiet())
		fronts.Compare(t, fronts.Exchange(s.http.Handler, "POST", "/v1/refund", "application/x-www-form-urlencoded",
			"receipt="+fronts.Receipt),
			fronts.Problem(415, "", wantJSON, ""))
	})
}

func TestGRPCRefund(t *testing.T) {
	node := &fronts.Node{GivenBack: again(partly())}
	client := quota(t, node)
	got, err := client.Refund(t.Context(), &quotadv1.RefundRequest{Receipt: fronts.Receipt})
	suite.Must(t, err)
	fronts.Equal(t, got, &quotadv1.RefundResponse{Repeated: true, Refunded: []*quotadv1.Refunded{
		{Limit: "account-minute", Units: 2}, {Limit: "queue", Reason: "turn promised"}}})
	_, err = client.Refund(t.Context(), &quotadv1.RefundRequest{})
	wantViolations(t, err, "receipt")
	node.Err = errElsewhere
	_, err = client.Refund(t.Context(), &quotadv1.RefundRequest{Receipt: fronts.Receipt})
	if s := status.Convert(err); s.Code() != codes.FailedPrecondition ||
		s.Message() != errElsewhere.Error() {
		t.Errorf("a receipt of another region is %v", err)
	}
}

// FuzzDecodeRefund: the decoder never panics, and what it accepts is what encoding/json reads,
// which is more lenient.
func FuzzDecodeRefund(f *testing.F) {
	for _, seed := range []string{aRefund, `{}`, `{"receipt":""}`, `{"receipt":null}`,
		`{"receipt":"a","receipt":"b"}`, `{"receipt":"\ud800"}`, `{"limit":"a"}`, `[]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := decodeRefund(body)
		var lenient struct{ Receipt string }
		fronts.WantLenient(t, body, err, &lenient)
		if err == nil && got != lenient.Receipt {
			t.Fatalf("%q is %q here and %q for encoding/json", body, got, lenient.Receipt)
		}
	})
}
