package policy

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestEntity: the entity of a bucket is the value of the first part of its key, of whatever bytes
// it is.
func TestEntity(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		ref := drawRef(t, "bucket")
		if got := ref.ID().Entity(); got != ref.Key[0].Value {
			t.Fatalf("the entity of %q is %q, want %q", ref.ID(), got, ref.Key[0].Value)
		}
	})
	l := parsed(Limit{Domain: "api", Name: "a", Key: []string{"account", "path"},
		Algorithm: FixedWindow, Window: time.Minute})
	if got := l.Bucket(map[string]string{"account": "42", "path": "/"}).Entity(); got != "42" {
		t.Errorf("entity %q, want 42", got)
	}
	for _, id := range []BucketID{"", "x", "3:api,", "3:api,1:a,12:fixed_window,8:10000000,1:k",
		"3:api,1:a,12:fixed_window,8:10000000,1:k,9:v,"} {
		if got := id.Entity(); got != "" {
			t.Errorf("the entity of %q is %q", id, got)
		}
	}
}
