package policy

import (
	"fmt"
	"testing"
	"time"
)

// assignDocument has one limit, 100 a second, with fields of assign.
func assignDocument(fields string) string {
	return assignedBy("limit: 100, window: 1s, assign: {" + fields + "}")
}

// assignedBy has one token bucket of two regions, with these fields.
func assignedBy(fields string) string {
	return fmt.Sprintf("version: 1\nregions: {eu: {weight: 1}, us: {weight: 1}}\nlimits:\n"+
		"- {name: a, domain: api, key: [k], algorithm: token_bucket, %s}\n", fields)
}

// checkAssigned checks what the stores and Envoys rely on.
func checkAssigned(t *testing.T, l *Limit) {
	t.Helper()
	limit, burst := l.Shared()
	a := l.Assign
	cells, held := l.Cell() == AssignCell, burst >= 1
	if l.Algorithm == FixedWindow {
		cells, held = l.Cell() >= MinAssignWindow, burst == 0
	} else if l.Algorithm != TokenBucket {
		t.Errorf("limits[%d] is a %s with assign", l.Index, l.Algorithm)
	}
	if l.Home() || l.Shadow || l.Alternative || l.Reserve() != 0 || !cells {
		t.Errorf("limits[%d] = %+v with assign", l.Index, l)
	}
	if limit < 1 || !held || a.NoAssignment < 0 || a.MaxBurst < 1 || a.TTL%time.Second != 0 ||
		a.TTL < MinAssignTTL || a.TTL > MaxAssignTTL {
		t.Errorf("limits[%d].assign = %+v leaves %d and a burst of %d", l.Index, *a, limit, burst)
	}
}

func TestAssignDefaults(t *testing.T) {
	const usual = 10 * time.Second
	for fields, want := range map[string]Assign{
		"limit: 100, window: 1s, assign: {}":                {usual, 0, 50}, // half the burst
		"limit: 600, window: 1m, burst: 50, assign: {}":     {usual, 0, 10}, // a second's units
		"limit: 601, window: 1m, burst: 50, assign: {}":     {usual, 0, 11},
		"limit: 100, window: 1500ms, assign: {}":            {usual, 0, 50},
		"limit: 8, window: 10ms, burst: 8000, assign: {}":   {usual, 0, 800},
		"limit: 100, window: 100ms, burst: 400, assign: {}": {usual, 0, 200},
		"limit: 100, window: 1s, assign: {ttl: 15s}":        {15 * time.Second, 0, 50},
		"limit: 100, window: 1s, assign: {ttl: 6s, no_assignment: 96, max_burst: 96}": {
			6 * time.Second, 96, 96},
	} {
		l := mustParse(t, assignedBy(fields)).Limits[0]
		if *l.Assign != want {
			t.Errorf("%s: %+v, want %+v", fields, *l.Assign, want)
		}
		checkAssigned(t, &l)
		if shared, burst := l.Shared(); shared != l.Limit-want.NoAssignment ||
			burst != l.Burst-want.MaxBurst {
			t.Errorf("%s: the stores share %d and a burst of %d", fields, shared, burst)
		}
	}
	l := mustParse(t, assignedBy("limit: 100, window: 1s")).Limits[0]
	if shared, burst := l.Shared(); l.Assign != nil || shared != 100 || burst != 100 ||
		l.Cell() != time.Second {
		t.Errorf("without assign: %+v", l)
	}
}

// TestAssignIsAnotherBucket: cells of another length are no cells of the same bucket. What assign
// says changes the epoch, and not the bucket.
func TestAssignIsAnotherBucket(t *testing.T) {
	request := map[string]string{"k": "42"}
	usual, other := mustParse(t, assignDocument("")), mustParse(t, assignDocument("ttl: 6s"))
	if usual.Epoch() == other.Epoch() {
		t.Error("two TTLs have one epoch")
	}
	written := mustParse(t, assignDocument("ttl: 10s, no_assignment: 0, max_burst: 50"))
	if usual.Epoch() != written.Epoch() {
		t.Error("defaults that are written have another epoch")
	}
	const want = "3:api,1:a,12:token_bucket,17:1000000000/assign,1:k,2:42,"
	for _, d := range []*Document{usual, other} {
		if id := d.Limits[0].Bucket(request); id != want {
			t.Errorf("%q, want %q", id, want)
		}
	}
}
