package odd

import (
	"bufio"
	"bytes"
	"net/http"
	"reflect"
	"testing"
)

// TestGenerator: a seed makes the same requests each time and another one others; every kind of
// oddity occurs; and net/http, which reads as quotad does, takes some of them and refuses others.
func TestGenerator(t *testing.T) {
	first, again, other := New(1, "h"), New(1, "h"), New(2, "h")
	seen := map[string]bool{}
	differ, read, refused := false, 0, 0
	for range 2000 {
		r := first.Next()
		if !reflect.DeepEqual(r, again.Next()) {
			t.Fatal("the same seed makes another request")
		}
		differ = differ || !bytes.Equal(r.Bytes, other.Next().Bytes)
		for _, k := range r.Kinds {
			seen[k] = true
		}
		if _, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(r.Bytes))); err == nil {
			read++
		} else {
			refused++
		}
	}
	if !differ || len(seen) != len(kinds) || read < 500 || refused < 500 {
		t.Errorf("seeds differ: %v, %d of %d kinds, %d read and %d refused", differ, len(seen),
			len(kinds), read, refused)
	}
}
