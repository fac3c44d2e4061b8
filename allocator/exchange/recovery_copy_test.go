//go:build !race

package exchange

import (
	"encoding/binary"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"unsafe"

	"github.com/quotad/quotad/algorithms"
)

// A search keeps many states of machines and of stores, and the latter are another package's. So
// they are copied and compared by reflection, private fields included. Buckets are the document's
// and shared.

// cloned returns a deep copy of what a pointer points to. Shared parts stay shared within the copy.
func cloned[T any](p *T) *T {
	return (*T)(clonePointer(reflect.ValueOf(p),
		map[unsafe.Pointer]reflect.Value{}).UnsafePointer())
}

func clonePointer(p reflect.Value, seen map[unsafe.Pointer]reflect.Value) reflect.Value {
	if p.IsNil() || p.Type() == reflect.TypeFor[*Bucket]() {
		return p
	}
	if to, ok := seen[p.UnsafePointer()]; ok {
		return to
	}
	to := reflect.New(p.Type().Elem())
	seen[p.UnsafePointer()] = to
	to.Elem().Set(p.Elem())
	deepen(to.Elem(), seen)
	return to
}

// deepen replaces what a shallow copy shares with its origin by copies.
func deepen(v reflect.Value, seen map[unsafe.Pointer]reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(clonePointer(v, seen))
	case reflect.Struct:
		for i := range v.NumField() {
			deepen(open(v.Field(i)), seen)
		}
	case reflect.Array:
		for i := range v.Len() {
			deepen(v.Index(i), seen)
		}
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		to := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(to, v)
		for i := range to.Len() {
			deepen(to.Index(i), seen)
		}
		v.Set(to)
	case reflect.Map:
		if v.IsNil() {
			return
		}
		to := reflect.MakeMap(v.Type())
		for key, value := range v.Seq2() {
			held := reflect.New(v.Type().Elem()).Elem()
			held.Set(value)
			deepen(held, seen)
			to.SetMapIndex(key, held)
		}
		v.Set(to)
	case reflect.Interface:
		if !v.IsNil() && v.Type() != reflect.TypeFor[algorithms.Calendar]() { // which never changes
			panic("search: cannot copy a " + v.Type().String())
		}
	case reflect.Func, reflect.Chan:
		panic("search: cannot copy a " + v.Type().String())
	}
}

// open makes a private field accessible.
func open(field reflect.Value) reflect.Value {
	if !field.CanAddr() {
		return field
	}
	return reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem()
}

// unread are the fields that decide nothing here: they count what happened, or enter the plan
// alone.
var unread = map[string]bool{
	"algorithms.Twin.calls": true, "algorithms.bucket.kept": true, "exchange.Machine.stats": true,
	"exchange.Machine.out": true,
	"exchange.view.state":  true, "exchange.view.stateAt": true, "exchange.view.demand": true,
	"exchange.view.wantedGot":        true,
	"exchange.position.refusedUntil": true, "exchange.position.spare": true,
	"exchange.position.spareAt": true,
	"exchange.position.askedAt": true, "exchange.peer.moved": true,
}

// canonical writes values as text.
type canonical struct {
	fields map[reflect.Type][]int // that are read, of each type
	text   []byte                 // of the value before, whose memory is used again
}

func (c *canonical) fieldsRead(t reflect.Type) []int {
	read, known := c.fields[t]
	if known {
		return read
	}
	for i := range t.NumField() {
		if !unread[t.String()+"."+t.Field(i).Name] {
			read = append(read, i)
		}
	}
	if c.fields == nil {
		c.fields = map[reflect.Type][]int{}
	}
	c.fields[t] = read
	return read
}

// canon appends a text that is the same for two values that behave the same. nil and empty are the
// same.
func (c *canonical) canon(text []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || v.Type() == reflect.TypeFor[*Bucket]() {
			return append(text, '~')
		}
		return c.canon(text, v.Elem())
	case reflect.Interface:
		if v.IsNil() {
			return append(text, '~')
		}
		return c.canon(append(text, v.Elem().Type().String()...), v.Elem())
	case reflect.Struct:
		text = append(text, '{')
		for _, i := range c.fieldsRead(v.Type()) {
			text = append(c.canon(text, v.Field(i)), ' ')
		}
		return append(text, '}')
	case reflect.Array, reflect.Slice:
		text = append(text, '[')
		for i := range v.Len() {
			text = append(c.canon(text, v.Index(i)), ' ')
		}
		return append(text, ']')
	case reflect.Map:
		return c.canonMap(text, v)
	case reflect.String:
		return strconv.AppendQuote(text, v.String())
	case reflect.Bool:
		return strconv.AppendBool(text, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(text, v.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.AppendUint(text, v.Uint(), 10)
	}
	panic(fmt.Sprint("search: cannot compare a ", v.Type()))
}

func (c *canonical) canonMap(text []byte, v reflect.Value) []byte {
	if v.Len() == 0 {
		return append(text, "<>"...)
	}
	entries := map[string]string{}
	for key, value := range v.Seq2() {
		entries[string(c.canon(nil, key))] = string(c.canon(nil, value))
	}
	text = append(text, '<')
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		text = append(append(append(append(text, key...), ':'), entries[key]...), ' ')
	}
	return append(text, '>')
}

// table numbers values. Values that behave the same have the same number.
type table[T any] struct {
	canonical
	ids map[string]int32
	all []T
}

func (t *table[T]) id(v T) int32 {
	t.text = t.canon(t.text[:0], reflect.ValueOf(&v).Elem())
	if id, ok := t.ids[string(t.text)]; ok {
		return id
	}
	if t.ids == nil {
		t.ids = map[string]int32{}
	}
	id := int32(len(t.all))
	t.ids[string(t.text)] = id
	t.all = append(t.all, v)
	return id
}

// sets numbers sorted sets of numbers.
type sets struct {
	ids map[string]int32
	all [][]int32
}

func (t *sets) of(items []int32) int32 {
	key := make([]byte, 0, 2*len(items))
	for _, item := range items {
		key = binary.AppendUvarint(key, uint64(item))
	}
	if id, ok := t.ids[string(key)]; ok {
		return id
	}
	if t.ids == nil {
		t.ids = map[string]int32{}
	}
	id := int32(len(t.all))
	t.ids[string(key)] = id
	t.all = append(t.all, items)
	return id
}
