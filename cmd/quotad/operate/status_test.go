package operate

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

func TestStatusWords(t *testing.T) {
	moment := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	behind, ahead := durationpb.New(-120*time.Millisecond),
		durationpb.New(30400*time.Microsecond)
	for _, c := range []struct{ got, want string }{
		{storePlace(&quotadv1.StoreStatus{Kind: "cluster", Address: "127.0.0.1:7000",
			Data: []string{"0123abcd", "89ef0123"}}, 3),
			"cluster 127.0.0.1:7000, generation 3, data 0123abcd 89ef0123"},
		{storePlace(&quotadv1.StoreStatus{Kind: "standalone", Address: "127.0.0.1:6379"}, 1),
			"standalone 127.0.0.1:6379, generation 1"},
		{storeState(&quotadv1.StoreStatus{MaxmemoryPolicy: new("noeviction"), ClockApart: ahead}),
			"in reach, no loss known, noeviction, clock 30ms ahead"},
		{storeState(&quotadv1.StoreStatus{OutOfReach: []string{"quotad:1", "quotad:7"}, LastLoss: timestamppb.New(moment),
			MaxmemoryPolicy: new("allkeys-lru"), ClockApart: behind}),
			"OUT OF REACH: quotad:1 quotad:7, decided as on_store_failure says, last lost data at 2026-01-02T03:04:05Z, " +
				"MAY FORGET BUCKETS: set maxmemory-policy noeviction, it is allkeys-lru, clock 120ms behind"},
		{storeState(&quotadv1.StoreStatus{Refusing: []*quotadv1.StoreRefusal{{Kind: "OOM", Calls: 7,
			Advice: "raise its maxmemory"},
			{Kind: "WRONGTYPE", Calls: 1, Advice: "delete that key"}}}),
			"REFUSES CALLS: OOM (7 so far; raise its maxmemory), REFUSES CALLS: WRONGTYPE (1 so far; delete that key), " +
				"no loss known, maxmemory-policy not known"},
		{storeState(&quotadv1.StoreStatus{Stopped: new("two stores: mend it"), Rivals: []*quotadv1.StoreRival{
			{Node: "us/n2", Id: "ab12"}, {Node: "us/n3", Id: "ab12", Stopped: true},
			{Node: "us/n4", Id: "ab12", Hearsay: true}}}),
			"NOT USED: two stores: mend it, A SECOND STORE: us/n2 has store ab12 and decides with it, " +
				"A SECOND STORE: us/n3 has store ab12 and has stopped using it, A SECOND STORE: us/n4 " +
				"has store ab12 and decides with it as gossip says, and does not answer at its peer " +
				"port, no loss known, maxmemory-policy not known"},
		{matesWords([]string{"us/n2"}, 2), "us/n2"},
		{matesWords([]string{"us/n2"}, 3), "us/n2; nodes says 3, gossip sees 2"},
		{storeState(&quotadv1.StoreStatus{}), "in reach, no loss known, maxmemory-policy not known"},
		{recoveryWords(&quotadv1.RecoveryStatus{}), "nothing to restore"},
		{recoveryWords(&quotadv1.RecoveryStatus{Waiting: 3, PartlyKnown: 1, Recovered: 9}),
			"3 buckets waiting, 9 restored, 1 of them but for regions that did not tell"},
		{journalWords(&quotadv1.JournalStatus{Incarnation: 1, Sequence: 7, Rows: 1, Whole: true}),
			"whole, opened 1 time, commit 7, 1 row, 0 checkpoints"},
		{journalWords(&quotadv1.JournalStatus{Incarnation: 2, Whole: true, WholeSince: timestamppb.New(moment)}),
			"whole since 2026-01-02T03:04:05Z, opened 2 times, commit 0, 0 rows, 0 checkpoints"},
		{journalWords(&quotadv1.JournalStatus{Incarnation: 2}),
			"not known to be whole, opened 2 times, commit 0, 0 rows, 0 checkpoints"},
		{journalWords(&quotadv1.JournalStatus{Incarnation: 2, Whole: true, Failed: true}),
			"FAILED: nothing is lent until the node starts anew, opened 2 times, commit 0, 0 rows, 0 checkpoints"},
		{localWords(&quotadv1.LocalStatus{Buckets: 2}), "nothing admitted without the store"},
		{localWords(&quotadv1.LocalStatus{Buckets: 1, Units: 5, Unbooked: 2}),
			"5 units of 1 bucket admitted without the store, 2 not charged there yet"},
		{peerRow(&quotadv1.Peer{Region: "eu", Degraded: true}, "degraded"),
			"eu\tdegraded\tnever\t-\t-"},
		{peerRow(&quotadv1.Peer{Region: "eu", Heard: true,
			Age:       durationpb.New(120 * time.Millisecond),
			RoundTrip: durationpb.New(80 * time.Millisecond), ClockApart: behind}, "degraded"),
			"eu\tok\t120ms ago\t80ms\t120ms behind"},
	} {
		if c.got != c.want {
			t.Errorf("got  %q\nwant %q", c.got, c.want)
		}
	}
}
