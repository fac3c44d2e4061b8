package operators

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/quotad/quotad/chaos/lab/fronts"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// TestStatusMessage: other nodes are told all of a status but what only the node itself is asked for.
func TestStatusMessage(t *testing.T) {
	fronts.Equal(t, statusMessage(fronts.Status(), nil), &quotadv1.StatusResponse{Region: "us-east", Node: "n1", Version: version(),
		Epoch: "3:abc", Generation: 2, Ready: true,
		Peers: []*quotadv1.Peer{{Region: "eu-west", Heard: true,
			Age:       durationpb.New(120500 * time.Microsecond),
			RoundTrip: durationpb.New(80 * time.Millisecond), Degraded: true,
			ClockApart: durationpb.New(-30 * time.Millisecond)}},
		Mates: []string{"us-east/n2"},
		Store: &quotadv1.StoreStatus{Kind: "sentinel", Address: "127.0.0.1:26379/main",
			Data:     []string{"0123abcd"},
			LastLoss: timestamppb.New(time.Unix(3600, 0)), Losses: 1,
			OutOfReach: []string{"quotad"}, MaxmemoryPolicy: new("noeviction"),
			Refusing: []*quotadv1.StoreRefusal{{Kind: "OOM", Calls: 7,
				Advice: "raise its maxmemory"}},
			Id: "ab12", Nodes: 2, Stopped: new("two stores: mend it"),
			Rivals: []*quotadv1.StoreRival{{Node: "us-east/n2", Id: "cd34", Hearsay: true}}},
		Recovery: &quotadv1.RecoveryStatus{Waiting: 3, PartlyKnown: 2, Recovered: 8},
		Journal: &quotadv1.JournalStatus{Incarnation: 2, Sequence: 9, Rows: 4, Checkpoints: 3,
			Whole: true},
		Local:     &quotadv1.LocalStatus{Buckets: 1, Units: 7, Unbooked: 5},
		Documents: &quotadv1.DocumentsStatus{}})
	if statusMessage(fronts.Status(), errors.New("the store is not open")).Ready {
		t.Error("a node that is not ready says that it is")
	}
}

func TestBucketMessage(t *testing.T) {
	fronts.Equal(t, bucketMessage(fronts.Bucket()), &quotadv1.BucketResponse{Limit: "account-minute", LimitUnits: 1000,
		Entitlement: 400, Cell: 5, Used: 31,
		Share: 425, NextShare: 400, Algorithm: "fixed_window", Fading: 31, Free: 394,
		Rights: []*quotadv1.Rights{
			{Cell: 5, Region: "ap-south", Lent: 1, Returned: 2, Borrowed: 3, Regained: 4},
			{Cell: 5, Region: "eu-west", Borrowed: 23}}})
	fronts.Equal(t, bucketMessage(fronts.TokenBucket()), &quotadv1.BucketResponse{Limit: "account-minute", LimitUnits: 1000,
		Entitlement: 400, Cell: 5, Used: 31,
		Share: 425, NextShare: 400, Algorithm: "token_bucket", Free: 394, Burst: new(int64(80)),
		Rights: []*quotadv1.Rights{
			{Cell: 5, Region: "eu-west", BurstLent: new(int64(6)), BurstBorrowed: new(int64(7))}}})
}
