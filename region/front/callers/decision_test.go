package callers

import (
	"testing"
	"time"
)

func TestSecondsRoundUp(t *testing.T) {
	for d, want := range map[time.Duration]int64{
		0: 0, 1: 1, time.Microsecond: 1, time.Second - 1: 1, time.Second: 1, time.Second + 1: 2,
		time.Minute: 60} {
		if got := seconds(d); got != want {
			t.Errorf("%v is %d s, want %d", d, got, want)
		}
	}
}
