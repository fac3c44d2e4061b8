package policy

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// someKept returns what may be kept of a limit of a month, of two regions.
func someKept(t *testing.T) *Kept {
	d := mustParse(t, "version: 3\nregions: {eu: {weight: 1}, us: {weight: 1}}\nlimits:\n"+
		"- {name: a, domain: api, key: [k], match: {plan: free}, algorithm: fixed_window, limit: 10, window: month, timezone: Europe/Berlin}\n")
	parts := [][]Part{{{Units: 5, Lendable: 4}, {Units: 5, Lendable: 4}}}
	return &Kept{Oldest: 3, Through: 9, Names: []Epoch{d.Epoch()}, Sets: [][]string{{"eu", "us"}},
		Limits: map[BucketID][]Piece{d.Limits[0].Bucket(nil): {{Until: 7, Regions: []string{"eu", "us"}, Least: parts, Most: parts, Limit: 10, Largest: 10}}}}
}

// TestKeptIsReadAsWritten, and its epoch has the highest version that is folded.
func TestKeptIsReadAsWritten(t *testing.T) {
	k := someKept(t)
	d, err := NewKept(k)
	if err != nil || !reflect.DeepEqual(d.Kept, k) {
		t.Fatalf("%+v, %v", d, err)
	}
	if name := d.Epoch().String(); !strings.HasPrefix(name, "9k-") || !d.Epoch().IsKept() || d.Version != KeptVersion+9 {
		t.Errorf("epoch %s, version %d", name, d.Version)
	}
	if _, err := Parse("limits.yaml", d.Source()); err == nil {
		t.Error("a person's document is read as what is kept")
	}
}

// TestWhatCannotBeKept is refused: it comes from other nodes.
func TestWhatCannotBeKept(t *testing.T) {
	for name, spoil := range map[string]func(k *Kept, p *Piece){
		"no limits":              func(k *Kept, _ *Piece) { k.Limits = nil },
		"no regions":             func(k *Kept, _ *Piece) { k.Sets = nil },
		"an empty set":           func(k *Kept, _ *Piece) { k.Sets = append(k.Sets, nil) },
		"a version of 0":         func(k *Kept, _ *Piece) { k.Oldest = 0 },
		"versions the wrong way": func(k *Kept, _ *Piece) { k.Oldest = 10 },
		"a version too high":     func(k *Kept, _ *Piece) { k.Through = MaxVersion + 1 },
		"no bucket":              func(k *Kept, p *Piece) { k.Limits = map[BucketID][]Piece{"x": {*p}} },
		"regions out of order":   func(_ *Kept, p *Piece) { p.Regions = []string{"us", "eu"} },
		"a part less":            func(_ *Kept, p *Piece) { p.Least = [][]Part{p.Least[0][:1]} },
		"rotations":              func(_ *Kept, p *Piece) { p.Most = [][]Part{p.Most[0], p.Most[0], p.Most[0]} },
		"negative units":         func(_ *Kept, p *Piece) { p.Least = [][]Part{{{Units: -1}, {}}} },
		"units out of range":     func(_ *Kept, p *Piece) { p.Most = [][]Part{{{Units: MaxLimit + 1}, {}}} },
		"no limit":               func(_ *Kept, p *Piece) { p.Largest = 0 },
		"lends more than all":    func(_ *Kept, p *Piece) { p.Lending = PPMOne + 1 },
	} {
		k := someKept(t)
		for id, pieces := range k.Limits {
			spoil(k, &pieces[0])
			if k.Limits != nil && len(k.Limits[id]) > 0 {
				k.Limits[id] = pieces
			}
		}
		if d, err := NewKept(k); !errors.Is(err, errKept) {
			t.Errorf("%s: %v, %v", name, d, err)
		}
	}
	if _, err := ParseOpen("x", []byte(keptHeader+"no gzip")); err == nil {
		t.Error("what is not compressed is read")
	}
}

// TestSpoiledKeptEndsNothing: whatever a node says that it keeps is read, or refused.
func TestSpoiledKeptEndsNothing(t *testing.T) {
	plain, err := json.Marshal(someKept(t))
	suite.Must(t, err)
	suite.Check(t, func(r *rapid.T) {
		spoiled := bytes.Clone(plain)
		for range rapid.IntRange(1, 3).Draw(r, "edits") {
			i := rapid.IntRange(0, len(spoiled)-1).Draw(r, "at")
			spoiled[i] = rapid.SampledFrom([]byte(`0123456789"[]{}:,-aekm`)).Draw(r, "byte")
		}
		text := bytes.NewBufferString(keptHeader)
		to := gzip.NewWriter(text)
		if _, err := to.Write(spoiled); err != nil || to.Close() != nil {
			t.Fatal(err)
		}
		d, err := ParseOpen("x", text.Bytes())
		if f, is := errors.AsType[*Fault](err); is {
			r.Fatal(f, string(f.Stack()))
		}
		if err == nil && (d.Kept.Through < 1 || quantity.Units(d.Kept.Through) > MaxVersion) {
			r.Fatal(d.Kept)
		}
	})
}
