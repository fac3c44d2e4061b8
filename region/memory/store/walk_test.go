package store

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestWalkShowsEveryBucket: a walk through a Redis that has other keys, too, shows all buckets that are
// there all the while.
func TestWalkShowsEveryBucket(t *testing.T) {
	server := fixtures.Process(t)
	admin := fixtures.Operator(t, server)
	s := connect(t, Options{URL: server.URL})
	mustOpen(t, s, as("n1", 0, nil))
	want := map[string]bool{}
	for i := range 2500 {
		id := fmt.Sprintf("bucket %d", i)
		want[id] = true
		suite.Must(t, admin.HSet(t.Context(), BucketKey(Whole, id), "x", "1").Err(),
			admin.Set(t.Context(), fmt.Sprint("somebody else's ", i), "1", 0).Err(),
			admin.Set(t.Context(), OnceKey(Whole, id), "1", 0).Err())
	}
	got, pages := map[string]bool{}, 0
	for from := uint64(0); pages == 0 || from != 0; pages++ {
		page, err := s.Walk(t.Context(), Whole, from, 100)
		suite.Must(t, err)
		for _, id := range page.Buckets {
			got[id] = true
		}
		if pages == 3 {
			suite.Must(t, admin.Del(t.Context(), BucketKey(Whole, "bucket 7")).Err())
			delete(want, "bucket 7")
			delete(got, "bucket 7")
		}
		from = page.Next
	}
	if pages < 10 {
		t.Errorf("the walk took %d pages", pages)
	}
	delete(got, "bucket 7")
	if !maps.Equal(got, want) {
		t.Errorf("%d buckets are shown, %d are there: missing %.200q", len(got), len(want), slices.Sorted(maps.Keys(minus(want, got))))
	}
}

func minus(a, b map[string]bool) map[string]bool {
	left := maps.Clone(a)
	maps.DeleteFunc(left, func(k string, _ bool) bool { return b[k] })
	return left
}
