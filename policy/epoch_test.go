package policy

import (
	"reflect"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestEpochIgnoresLayout writes one document in two ways that differ in everything without meaning:
// layout, comments, order of regions, fields and conditions, spelling of the window, defaults
// written out.
func TestEpochIgnoresLayout(t *testing.T) {
	one := mustParse(t, `
version: 7
regions: {us: {weight: 2}, eu: {weight: 1}}
limits:
- {name: a, domain: api, key: [k], match: {plan: free, tier: x}, algorithm: fixed_window, limit: 10, window: 1m}
`)
	two := mustParse(t, `
# The same, written by somebody else.
limits:
  - window: 60s
    limit: 10
    algorithm: "fixed_window"
    match:
      tier: 'x'
      plan: free
    key:
      - k
    domain: api
    name: a # short
    weights: {us: 2, eu: 1}
    lending_limit: 0.950
    on_exhausted: deny
    on_store_failure: local
    local_reserve: 0.0
    shadow: false

regions:
  eu:
    weight: 1
  us:
    weight: 2
version: 7
`)
	if one.Epoch() != two.Epoch() {
		t.Errorf("epochs %s and %s of one document", one.Epoch(), two.Epoch())
	}
}

// TestEpochIsPinned fails when the canonical encoding changes. All nodes of all
// regions compare digests, so a change needs a new canonicalForm and a plan for
// nodes of both versions side by side.
func TestEpochIsPinned(t *testing.T) {
	doc, err := Load("testdata/limits.yaml")
	suite.Must(t, err)
	const want = "3-5acf38d372ee"
	if got := doc.Epoch().String(); got != want {
		t.Errorf("epoch %s, want %s", got, want)
	}
	if doc.Epoch() == (Epoch{}) {
		t.Error("a document has the epoch of no document")
	}
}

// TestEpochCoversEveryField changes each field of a document by itself and expects another digest,
// so that a field added later is not forgotten.
func TestEpochCoversEveryField(t *testing.T) {
	load := func() *Document {
		doc, err := Load("testdata/limits.yaml")
		suite.Must(t, err)
		return doc
	}
	old := load().computeEpoch()
	check := func(name string, target func(*Document) reflect.Value, meaningless ...string) {
		fields := reflect.TypeOf(target(load()).Interface())
		for i := range fields.NumField() {
			field := fields.Field(i)
			if !field.IsExported() {
				continue
			}
			doc := load()
			change(t, target(doc).Field(i))
			same := doc.computeEpoch() == old
			if want := strings.Contains(strings.Join(meaningless, " "), field.Name); same != want {
				t.Errorf("%s.%s: another value gives the same epoch: %v, want %v", name, field.Name,
					same, want)
			}
		}
	}
	check("Document", func(d *Document) reflect.Value { return reflect.ValueOf(d).Elem() }, "Kept")
	check("Region", func(d *Document) reflect.Value {
		return reflect.ValueOf(&d.Regions[0]).Elem()
	})
	check("Limit", func(d *Document) reflect.Value { return reflect.ValueOf(&d.Limits[0]).Elem() },
		"Index", "Pos")
	check("Assign", func(d *Document) reflect.Value {
		d.Limits[0].Assign = &Assign{}
		return reflect.ValueOf(d.Limits[0].Assign).Elem()
	})
	check("Condition", func(d *Document) reflect.Value {
		return reflect.ValueOf(&d.Limits[0].Match[0]).Elem()
	})
}

// TestEpochDiffersByBurst expects one epoch if the burst is the default, written or not, and
// another if it is not. The bucket stays the same.
func TestEpochDiffersByBurst(t *testing.T) {
	parse := func(burst string) *Document {
		return mustParse(t, "version: 1\nregions: {eu: {weight: 1}}\nlimits:\n"+
			"- {name: a, domain: api, key: [k], algorithm: token_bucket, limit: 10, window: 1m"+
			burst+"}\n")
	}
	plain, written, more := parse(""), parse(", burst: 10"), parse(", burst: 11")
	if plain.Epoch() != written.Epoch() {
		t.Errorf("epochs %s and %s of one burst", plain.Epoch(), written.Epoch())
	}
	if plain.Epoch() == more.Epoch() {
		t.Errorf("epoch %s of two bursts", more.Epoch())
	}
	request := map[string]string{"k": "42"}
	if one, two := plain.Limits[0].Bucket(request), more.Limits[0].Bucket(request); one != two {
		t.Errorf("bursts 10 and 11 have the buckets %q and %q", one, two)
	}
}

// TestCanonicalForm compares the encoding of a document with its expected text, field by field,
// which a digest cannot show.
func TestCanonicalForm(t *testing.T) {
	doc := mustParse(t, `
version: 7
regions: {us: {weight: 2}, eu: {weight: 1}}
limits:
- {name: a, domain: api, key: [k], match: {plan: free}, algorithm: leaky_bucket, limit: 10, window: 1m, burst: 30}
`)
	fields, err := splitNetstrings(string(doc.canonical()))
	suite.Must(t, err)
	want := "quotad limits 3|7|2|eu|1|us|2|1" +
		"|a|api|1|k|1|plan|free|leaky_bucket|10|60000000000|30|1|2|-1|950000|deny|local|0|false"
	if got := strings.Join(fields, "|"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// change gives v another value.
func change(t *testing.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			return
		}
		v.Set(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, 2), v.Slice(0, v.Len()-1)))
	case reflect.Struct:
		change(t, v.Field(0))
	case reflect.Map:
		key := reflect.New(v.Type().Key()).Elem()
		key.SetString("x")
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, reflect.Zero(v.Type().Elem()))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	default:
		t.Fatalf("the test does not know how to change a %s", v.Type())
	}
}
