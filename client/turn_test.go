package client

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// TestAToldTurnIsNotRemembered: where requests are told to come one after the other, a denial is
// remembered for as long as the region denies, not until this caller's turn.
func TestAToldTurnIsNotRemembered(t *testing.T) {
	d := &quotadv1.Decision{RetryAfter: durationpb.New(time.Second)}
	if retry := answerOf(decisionOf(d), 1, 0, 0).Verdict.Retry; retry != 1_000_000 {
		t.Errorf("denied for %d us, want the retry time", retry)
	}
	d.DeniedFor = durationpb.New(5 * time.Millisecond)
	if retry := answerOf(decisionOf(d), 1, 0, 0).Verdict.Retry; retry != 5_000 || decisionOf(d).RetryAfter != time.Second {
		t.Errorf("denied for %d us, want 5000", retry)
	}
}
