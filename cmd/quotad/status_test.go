package main

import (
	"testing"
	"time"
)

func TestStatusWords(t *testing.T) {
	moment := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	behind, ahead := -120.0, 30.4
	for _, c := range []struct{ got, want string }{
		{storeStatus{Kind: "cluster", Address: "127.0.0.1:7000", Data: []string{"0123abcd", "89ef0123"}}.where(3),
			"cluster 127.0.0.1:7000, generation 3, data 0123abcd 89ef0123"},
		{storeStatus{Kind: "standalone", Address: "127.0.0.1:6379"}.where(1), "standalone 127.0.0.1:6379, generation 1"},
		{storeStatus{MaxmemoryPolicy: "noeviction", ClockApart: &ahead}.state(), "in reach, no loss known, noeviction, clock 30ms ahead"},
		{storeStatus{OutOfReach: []string{"quotad:1", "quotad:7"}, LastLoss: moment, MaxmemoryPolicy: "allkeys-lru", ClockApart: &behind}.state(),
			"OUT OF REACH: quotad:1 quotad:7, decided as on_store_failure says, last lost data at 2026-01-02T03:04:05Z, " +
				"MAY FORGET BUCKETS: set maxmemory-policy noeviction, it is allkeys-lru, clock 120ms behind"},
		{storeStatus{Refusing: []refusal{{"OOM", 7, "raise its maxmemory"}, {"WRONGTYPE", 1, "delete that key"}}}.state(),
			"REFUSES CALLS: OOM (7 so far; raise its maxmemory), REFUSES CALLS: WRONGTYPE (1 so far; delete that key), " +
				"no loss known, maxmemory-policy not known"},
		{storeStatus{}.state(), "in reach, no loss known, maxmemory-policy not known"},
		{recoveryStatus{}.words(), "nothing to restore"},
		{recoveryStatus{Waiting: 3, PartlyKnown: 1, Recovered: 9}.words(), "3 buckets waiting, 9 restored, 1 of them but for regions that did not tell"},
		{journalStatus{Incarnation: 1, Sequence: 7, Rows: 1, Whole: true}.words(), "whole, opened 1 time, commit 7, 1 row, 0 checkpoints"},
		{journalStatus{Incarnation: 2, Whole: true, WholeSince: moment}.words(), "whole since 2026-01-02T03:04:05Z, opened 2 times, commit 0, 0 rows, 0 checkpoints"},
		{journalStatus{Incarnation: 2}.words(), "not known to be whole, opened 2 times, commit 0, 0 rows, 0 checkpoints"},
		{journalStatus{Incarnation: 2, Whole: true, Failed: true}.words(), "FAILED: nothing is lent until the node starts anew, opened 2 times, commit 0, 0 rows, 0 checkpoints"},
		{localStatus{Buckets: 2}.words(), "nothing admitted without the store"},
		{localStatus{Buckets: 1, Units: 5, Unbooked: 2}.words(), "5 units of 1 bucket admitted without the store, 2 not booked there yet"},
		{peerStatus{Region: "eu", Degraded: true}.row(), "eu\tdegraded\tnever\t-\t-"},
		{peerStatus{Region: "eu", Heard: true, Age: 120, RoundTrip: 80, ClockApart: &behind}.row(), "eu\tok\t120ms ago\t80ms\t120ms behind"},
	} {
		if c.got != c.want {
			t.Errorf("got  %q\nwant %q", c.got, c.want)
		}
	}
}
