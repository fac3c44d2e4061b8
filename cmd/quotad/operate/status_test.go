package operate

import (
	"testing"
	"time"

	"github.com/quotad/quotad/region/front/api"
)

func TestStatusWords(t *testing.T) {
	moment := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	behind, ahead := api.Milliseconds(-120*time.Millisecond),
		api.Milliseconds(30400*time.Microsecond)
	for _, c := range []struct{ got, want string }{
		{storePlace(api.StoreStatus{Kind: "cluster", Address: "127.0.0.1:7000",
			Data: []string{"0123abcd", "89ef0123"}}, 3),
			"cluster 127.0.0.1:7000, generation 3, data 0123abcd 89ef0123"},
		{storePlace(api.StoreStatus{Kind: "standalone", Address: "127.0.0.1:6379"}, 1),
			"standalone 127.0.0.1:6379, generation 1"},
		{storeState(api.StoreStatus{MaxmemoryPolicy: "noeviction", ClockApart: &ahead}),
			"in reach, no loss known, noeviction, clock 30ms ahead"},
		{storeState(api.StoreStatus{OutOfReach: []string{"quotad:1", "quotad:7"}, LastLoss: moment,
			MaxmemoryPolicy: "allkeys-lru", ClockApart: &behind}),
			"OUT OF REACH: quotad:1 quotad:7, decided as on_store_failure says, last lost data at 2026-01-02T03:04:05Z, " +
				"MAY FORGET BUCKETS: set maxmemory-policy noeviction, it is allkeys-lru, clock 120ms behind"},
		{storeState(api.StoreStatus{Refusing: []api.StoreRefusal{{Kind: "OOM", Calls: 7,
			Advice: "raise its maxmemory"},
			{Kind: "WRONGTYPE", Calls: 1, Advice: "delete that key"}}}),
			"REFUSES CALLS: OOM (7 so far; raise its maxmemory), REFUSES CALLS: WRONGTYPE (1 so far; delete that key), " +
				"no loss known, maxmemory-policy not known"},
		{storeState(api.StoreStatus{Stopped: "two stores: mend it", Rivals: []api.StoreRival{
			{Node: "us/n2", ID: "ab12"}, {Node: "us/n3", ID: "ab12", Stopped: true},
			{Node: "us/n4", ID: "ab12", Hearsay: true}}}),
			"NOT USED: two stores: mend it, A SECOND STORE: us/n2 has store ab12 and decides with it, " +
				"A SECOND STORE: us/n3 has store ab12 and has stopped using it, A SECOND STORE: us/n4 " +
				"has store ab12 and decides with it as gossip says, and does not answer at its peer " +
				"port, no loss known, maxmemory-policy not known"},
		{matesWords([]string{"us/n2"}, 2), "us/n2"},
		{matesWords([]string{"us/n2"}, 3), "us/n2; nodes says 3, gossip sees 2"},
		{storeState(api.StoreStatus{}), "in reach, no loss known, maxmemory-policy not known"},
		{recoveryWords(api.RecoveryStatus{}), "nothing to restore"},
		{recoveryWords(api.RecoveryStatus{Waiting: 3, PartlyKnown: 1, Recovered: 9}),
			"3 buckets waiting, 9 restored, 1 of them but for regions that did not tell"},
		{journalWords(api.JournalStatus{Incarnation: 1, Sequence: 7, Rows: 1, Whole: true}),
			"whole, opened 1 time, commit 7, 1 row, 0 checkpoints"},
		{journalWords(api.JournalStatus{Incarnation: 2, Whole: true, WholeSince: moment}),
			"whole since 2026-01-02T03:04:05Z, opened 2 times, commit 0, 0 rows, 0 checkpoints"},
		{journalWords(api.JournalStatus{Incarnation: 2}),
			"not known to be whole, opened 2 times, commit 0, 0 rows, 0 checkpoints"},
		{journalWords(api.JournalStatus{Incarnation: 2, Whole: true, Failed: true}),
			"FAILED: nothing is lent until the node starts anew, opened 2 times, commit 0, 0 rows, 0 checkpoints"},
		{localWords(api.LocalStatus{Buckets: 2}), "nothing admitted without the store"},
		{localWords(api.LocalStatus{Buckets: 1, Units: 5, Unbooked: 2}),
			"5 units of 1 bucket admitted without the store, 2 not charged there yet"},
		{peerRow(api.PeerStatus{Region: "eu", Degraded: true}, "degraded"),
			"eu\tdegraded\tnever\t-\t-"},
		{peerRow(api.PeerStatus{Region: "eu", Heard: true,
			Age:       api.Milliseconds(120 * time.Millisecond),
			RoundTrip: api.Milliseconds(80 * time.Millisecond), ClockApart: &behind}, "degraded"),
			"eu\tok\t120ms ago\t80ms\t120ms behind"},
	} {
		if c.got != c.want {
			t.Errorf("got  %q\nwant %q", c.got, c.want)
		}
	}
}
