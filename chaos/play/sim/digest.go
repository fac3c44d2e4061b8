package sim

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"reflect"
	"slices"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/region/decide/admit"
)

// Digest is a hash over every event that the nodes of a run heard, every effect of these events and
// every decision, in order. It depends on values alone, not on the names of types and fields: code
// that was only rearranged has the same digests as before.
type Digest [sha256.Size]byte

// digest computes a Digest. Calls on a nil digest do nothing.
type digest struct {
	hash hash.Hash
	text []byte // encoding of the current occurrence
}

func newDigest() *digest { return &digest{hash: sha256.New()} }

// eventNumbers gives each type of event a number, which is written to the digest.
var eventNumbers = func() map[reflect.Type]int {
	numbers := map[reflect.Type]int{}
	for i, e := range []exchange.Event{exchange.Tick{}, exchange.Observed{}, exchange.Report{},
		exchange.Wanted{},
		exchange.Asked{}, exchange.Lent{}, exchange.Recorded{}, exchange.Answered{},
		exchange.Unanswered{},
		exchange.Credited{}, exchange.Heard{}, exchange.TenureChanged{}, exchange.Lost{},
		exchange.Questioned{},
		exchange.Testified{}, exchange.Consulted{}, exchange.Restored{}, exchange.Gathered{}, exchange.Waived{}, exchange.Named{}} {
		numbers[reflect.TypeOf(e)] = i
	}
	return numbers
}()

// heard adds an event that a node heard, and its effects.
func (d *digest) heard(n *node, now int64, e exchange.Event, out exchange.Effects) {
	if d == nil {
		return
	}
	number, known := eventNumbers[reflect.TypeOf(e)]
	if !known {
		panic(fmt.Sprintf("events of type %T have no number", e))
	}
	d.begin(n, now, number)
	d.add(reflect.ValueOf(e))
	d.add(reflect.ValueOf(out))
	d.hash.Write(d.text)
}

// aDecision is written in place of an event's number.
const aDecision = -1

// decided adds a decision of a node.
func (d *digest) decided(n *node, now int64, rq *request, decision admit.Decision) {
	if d == nil {
		return
	}
	if decision.Receipt != "" {
		decision.Receipt = "a receipt" // the real one is sealed with random bytes
	}
	d.begin(n, now, aDecision)
	d.add(reflect.ValueOf(rq.q))
	d.add(reflect.ValueOf(decision))
	d.hash.Write(d.text)
}

func (d *digest) begin(n *node, now int64, number int) {
	d.text = d.text[:0]
	d.integer(now)
	d.string(n.name)
	d.integer(int64(number))
}

// sum returns the digest of everything added.
func (d *digest) sum() (sum Digest) {
	if d != nil {
		copy(sum[:], d.hash.Sum(nil))
	}
	return sum
}

func (d *digest) integer(i int64) { d.text = binary.AppendVarint(d.text, i) }

func (d *digest) string(s string) {
	d.integer(int64(len(s)))
	d.text = append(d.text, s...)
}

// add adds a value. It leaves out zero fields, so that a new field that is zero changes no digest.
// Of an exchange.Bucket it adds ID and Epoch: everything else follows from them.
func (d *digest) add(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		d.integer(map[bool]int64{true: 1}[v.Bool()])
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		d.integer(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		d.integer(int64(v.Uint()))
	case reflect.String:
		d.string(v.String())
	case reflect.Slice, reflect.Array:
		d.integer(int64(v.Len()))
		for i := range v.Len() {
			d.add(v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[exchange.Credit]() {
			d.rearranged(v, "Bucket", "Peer", "PeerGeneration", "ForGeneration", "Cell", "Lent", "Returned",
				"Most", "Gain", "Burst", "MostBurst", "GainBurst")
			return
		}
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() {
				d.add(f)
			}
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys,
			func(a, b reflect.Value) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		d.integer(int64(len(keys)))
		for _, k := range keys {
			d.add(k)
			d.add(v.MapIndex(k))
		}
	case reflect.Pointer:
		switch {
		case v.IsNil():
			d.integer(0)
		case v.Type() == reflect.TypeFor[*exchange.Bucket]():
			d.string(v.Elem().FieldByName("ID").String())
			d.string(v.Elem().FieldByName("Epoch").String())
		default:
			d.integer(1)
			d.add(v.Elem())
		}
	default:
		panic(fmt.Sprintf("a value of %v has no digest", v.Type()))
	}
}

// rearranged adds a struct whose fields, those of embedded structs included, were put in another order:
// first the named ones, in the order that digests have always had them, then the others.
func (d *digest) rearranged(v reflect.Value, first ...string) {
	for _, f := range reflect.VisibleFields(v.Type()) {
		if !f.Anonymous && !slices.Contains(first, f.Name) {
			first = append(first, f.Name)
		}
	}
	for _, name := range first {
		if f := v.FieldByName(name); !f.IsZero() {
			d.add(f)
		}
	}
}

// seedDigest is the digest of a seed's run.
type seedDigest struct {
	seed uint64
	sum  Digest
}

// together returns the digest of several runs, in the order of their seeds.
func together(all []seedDigest) (sum Digest) {
	slices.SortFunc(all, func(a, b seedDigest) int { return cmp.Compare(a.seed, b.seed) })
	h := sha256.New()
	for _, one := range all {
		h.Write(binary.LittleEndian.AppendUint64(nil, one.seed))
		h.Write(one.sum[:])
	}
	copy(sum[:], h.Sum(nil))
	return sum
}
