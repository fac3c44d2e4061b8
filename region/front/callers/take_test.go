package callers

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/suite"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/wire"
)

func TestGRPCTake(t *testing.T) {
	node := &fronts.Node{Decision: fronts.Allowed()}
	client := quota(t, node)
	take := func(units int64) (*quotadv1.TakeResponse, error) {
		return client.Take(t.Context(), &quotadv1.TakeRequest{Domain: "api",
			Descriptors: map[string]string{"account": "42"}, Units: units, Admitted: 3, Denied: 4})
	}
	got, err := take(100)
	suite.Must(t, err)
	fronts.Equal(t, got, &quotadv1.TakeResponse{Units: 100, Decision: wire.DecisionMessage(fronts.Allowed()),
		SpendWithin: durationpb.New(time.Second), Receipt: fronts.Receipt})
	if q := node.Taken[0]; q.Domain != "api" || q.Descriptors["account"] != "42" || q.Units != 100 ||
		q.Admitted != 3 || q.Denied != 4 || q.Caller == "" {
		t.Errorf("the node was asked for %+v", q)
	}
	got, err = take(0)
	suite.Must(t, err)
	fronts.Equal(t, got, &quotadv1.TakeResponse{})
	_, err = take(-1)
	wantViolations(t, err, "units")
	node.Err = fmt.Errorf("%w: limit exact is exact", admit.ErrExact)
	if _, err = take(100); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("of an exact limit: %v", err)
	}
	node.Err = errors.New("closed")
	if _, err = take(100); status.Code(err) != codes.Unavailable {
		t.Errorf("of a node that fails: %v", err)
	}
}
