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

// partly is a settlement of which one charge could not be given back.
func partly() receipts.Settled {
	return receipts.Settled{Charges: []receipts.SettledCharge{{Limit: "account-minute", Back: 2},
		{Limit: "queue", Reason: "turn promised"}}}
}

func again(r receipts.Settled) receipts.Settled {
	r.Repeated = true
	return r
}

const settles = `{"receipt":"` + fronts.Receipt + `","used":3}`

// errElsewhere is as the error with which a node refuses the receipt of another region.
var errElsewhere = fmt.Errorf("%w: it is of region %q: send it there", receipts.ErrRefused, "eu-west")

func TestSettle(t *testing.T) {
	const ok = "200\n" + fronts.JSONType
	none := fronts.Problem(400, "", "receipt: is none; send the receipt of a decision as it was given",
		`,"field":"receipt"`)
	for _, c := range []struct {
		name    string
		body    string
		settled receipts.Settled
		err     error
		want    string
	}{
		{"given back", settles, partly(), nil,
			ok + `{"settled":[{"limit":"account-minute","back":2,"charged":0,"owed":0},{"limit":"queue","back":0,"reason":"turn promised","charged":0,"owed":0}],"repeated":false,"used":3}`},
		{"given back before", settles, again(partly()), nil,
			ok + `{"settled":[{"limit":"account-minute","back":2,"charged":0,"owed":0},{"limit":"queue","back":0,"reason":"turn promised","charged":0,"owed":0}],"repeated":true,"used":3}`},
		{"of no charges", settles, receipts.Settled{}, nil, ok + `{"settled":[],"repeated":false,"used":3}`},
		{"no receipt", `{"receipt":"other","used":0}`, partly(), nil, none},
		{"nothing", `{}`, partly(), nil, fronts.Problem(400, "", "used: is missing; say how many units were used, 0 if none were", `,"field":"used"`)},
		{"beyond", settles, receipts.Settled{Charges: []receipts.SettledCharge{{Limit: "a", Charged: 9, Owed: 4}}}, nil,
			ok + `{"settled":[{"limit":"a","back":0,"charged":9,"owed":4}],"repeated":false,"used":3}`},
		{"another field", `{"receipt":"-Rc_9","domain":"api"}`, partly(), nil,
			fronts.Problem(400, "", `body: has the unknown field \"domain\"; there are receipt and used`,
				`,"field":"body"`)},
		{"of a boolean", `{"receipt":true}`, partly(), nil,
			fronts.Problem(400, "", "receipt: must be a JSON string", `,"field":"receipt"`)},
		{"too large", `{"receipt":"` + strings.Repeat("a", wire.MaxBodyBytes) + `"}`, partly(), nil,
			fronts.Problem(413, "", "the body is larger than 65536 bytes", "")},
		{"of another region", settles, partly(), errElsewhere,
			fronts.Problem(409, "", strings.ReplaceAll(errElsewhere.Error(), `"`, `\"`), "")},
		{"of a store that fails", settles, partly(), errors.New("settle: unknown store"),
			fronts.Problem(503, "", "settle: unknown store", "")},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, &fronts.Node{Settled: c.settled, Err: c.err}, fronts.Quiet())
			fronts.Compare(t, fronts.Exchange(s.http.Handler, "POST", "/v1/settle", "application/json", c.body), c.want)
		})
	}
	t.Run("of a form", func(t *testing.T) {
		s := newServer(t, &fronts.Node{}, fronts.Quiet())
		fronts.Compare(t, fronts.Exchange(s.http.Handler, "POST", "/v1/settle", "application/x-www-form-urlencoded",
			"receipt="+fronts.Receipt),
			fronts.Problem(415, "", wantJSON, ""))
	})
}

func TestGRPCSettle(t *testing.T) {
	node := &fronts.Node{Settled: again(partly())}
	client := quota(t, node)
	used := int64(3)
	got, err := client.Settle(t.Context(), &quotadv1.SettleRequest{Receipt: fronts.Receipt, Used: &used})
	suite.Must(t, err)
	fronts.Equal(t, got, &quotadv1.SettleResponse{Repeated: true, Used: 3, Settled: []*quotadv1.Settled{
		{Limit: "account-minute", Back: 2}, {Limit: "queue", Reason: "turn promised"}}})
	_, err = client.Settle(t.Context(), &quotadv1.SettleRequest{Receipt: fronts.Receipt})
	wantViolations(t, err, "used")
	_, err = client.Settle(t.Context(), &quotadv1.SettleRequest{Used: &used})
	wantViolations(t, err, "receipt")
	node.Err = errElsewhere
	_, err = client.Settle(t.Context(), &quotadv1.SettleRequest{Receipt: fronts.Receipt, Used: &used})
	if s := status.Convert(err); s.Code() != codes.FailedPrecondition ||
		s.Message() != errElsewhere.Error() {
		t.Errorf("a receipt of another region is %v", err)
	}
}

// FuzzDecodeSettle: the decoder never panics, and what it accepts is what encoding/json reads,
// which is more lenient.
func FuzzDecodeSettle(f *testing.F) {
	for _, seed := range []string{settles, `{}`, `{"receipt":"","used":0}`, `{"receipt":null,"used":1}`,
		`{"receipt":"a","receipt":"b"}`, `{"receipt":"\ud800"}`, `{"used":-1}`, `{"used":1e3}`, `{"limit":"a"}`, `[]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := decodeSettle(body)
		var lenient struct {
			Receipt string
			Used    *int64
		}
		fronts.WantLenient(t, body, err, &lenient)
		if err == nil && (got.receipt != lenient.Receipt || lenient.Used == nil || int64(got.used) != *lenient.Used) {
			t.Fatalf("%q is %+v here and %+v for encoding/json", body, got, lenient)
		}
	})
}
