package wire

import (
	"net/http"
	"os"
	"testing"

	"github.com/quotad/quotad/region/memory/store"
)

// TestASlowStoreIsNotASlowCaller: both errors are deadlines, but only one is the caller's fault.
func TestASlowStoreIsNotASlowCaller(t *testing.T) {
	slow := &store.Error{Server: "127.0.0.1:6379", Call: "inspect", Err: os.ErrDeadlineExceeded,
		Next: "check that it runs"}
	if p := ProblemOf(slow); p.Status != http.StatusServiceUnavailable {
		t.Errorf("a store that does not answer: %+v", p)
	}
	if p := ProblemOf(os.ErrDeadlineExceeded); p.Status != http.StatusRequestTimeout {
		t.Errorf("a body that does not arrive: %+v", p)
	}
}
