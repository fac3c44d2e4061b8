//go:build !race

package algorithms

import (
	"reflect"
	"testing"
	"unsafe"
)

// full returns a twin in which everything that can be set is set, by reflection, so that a field
// added later is not left out.
func full() *Twin {
	w := &Twin{}
	fill(reflect.ValueOf(w).Elem(), 1)
	return w
}

// fill sets a value, private fields included, and everything it refers to; n makes values differ.
func fill(v reflect.Value, n int64) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			fill(reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem(), n+int64(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 8))
		fill(v.Index(0), n)
		fill(v.Index(1), n+1)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for i := range int64(2) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(key, n+i)
			fill(value, n+i)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(string(rune('a' + n)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(n)
	case reflect.Uint64:
		v.SetUint(uint64(n))
	default:
		panic("a twin holds a " + v.Type().String())
	}
}

// shared adds the addresses of everything that a value refers to, with the path to it.
func shared(v reflect.Value, way string, at map[unsafe.Pointer]string) {
	switch v.Kind() {
	case reflect.Pointer:
		at[v.UnsafePointer()] = way
		shared(v.Elem(), way, at)
	case reflect.Struct:
		for i := range v.NumField() {
			shared(v.Field(i), way+"."+v.Type().Field(i).Name, at)
		}
	case reflect.Slice:
		at[v.UnsafePointer()] = way
		for i := range v.Len() {
			shared(v.Index(i), way+"[]", at)
		}
	case reflect.Map:
		at[v.UnsafePointer()] = way
		for _, value := range v.Seq2() {
			shared(value, way+"[]", at)
		}
	}
}

// TestClone: a clone of a twin equals it and shares nothing with it.
func TestClone(t *testing.T) {
	w := full()
	c := w.Clone()
	if !reflect.DeepEqual(c, w) {
		t.Fatalf("the clone is\n%+v, not\n%+v", c, w)
	}
	of, ofClone := map[unsafe.Pointer]string{}, map[unsafe.Pointer]string{}
	shared(reflect.ValueOf(w), "twin", of)
	shared(reflect.ValueOf(c), "twin", ofClone)
	if len(of) < 20 {
		t.Errorf("a full twin leads to %d places: the test shows little", len(of))
	}
	for p, way := range of {
		if ofClone[p] != "" {
			t.Errorf("the clone shares %s", way)
		}
	}
	if empty := (&Twin{}).Clone(); !reflect.DeepEqual(empty, &Twin{}) {
		t.Errorf("the clone of an empty twin is %+v", empty)
	}
}

// TestDeleteToken: after DEL of the token's key everything but the token is left.
func TestDeleteToken(t *testing.T) {
	w, want := full(), full()
	w.DeleteToken()
	want.Generation, want.Region, want.Epoch, want.mark, want.lostAt, want.floors = 0, "", "", 0, 0,
		nil
	want.layout, want.secret, want.replid, want.since, want.begun = 0, "", "", 0, 0
	want.notes, want.answered, want.together, want.moved, want.older = nil, nil, false, false, false
	if !reflect.DeepEqual(w, want) {
		t.Errorf("the token deleted, there is\n%+v, want\n%+v", w, want)
	}
}
