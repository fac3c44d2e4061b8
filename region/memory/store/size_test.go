package store

import "testing"

// TestSize: what a server holds is counted: the token, and a key for each bucket.
func TestSize(t *testing.T) {
	server := kinds["process"].start(t)
	s := node(t, server, first)
	before, err := s.Size(t.Context())
	if err != nil || !before.Reported || before.Keys != 1 || before.Bytes <= 0 {
		t.Fatalf("an opened store: %+v, %v", before, err)
	}
	for _, id := range []string{"a", "b", "c"} {
		serves(t, s, id)
	}
	if after, err := s.Size(t.Context()); err != nil || after.Keys != 4 || after.Bytes <= 0 {
		t.Errorf("with three buckets: %+v, %v", after, err)
	}
	e := node(t, kinds["embedded"].start(t), first)
	if got, err := e.Size(t.Context()); err != nil || got.Reported && got.Bytes <= 0 {
		t.Errorf("the embedded Redis: %+v, %v", got, err)
	}
}
