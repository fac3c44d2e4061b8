package policy

import (
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// classesDocument is a document of two limits with classes, one of them with entries.
const classesDocument = `version: 1
regions: {eu: {weight: 1}, us: {weight: 1}}
limits:
  - {name: calls, domain: api, key: [account], algorithm: fixed_window, limit: 100, window: 1m, classes: {by: priority, batch: 0.6, interactive: 1}}
  - {name: path, domain: gate, entries: [{key: account}, {key: op, value: read}], algorithm: fixed_window, limit: 100, window: 1m, classes: {by: priority, batch: 0.6}}
  - {name: longer, domain: gate, entries: [{key: account}, {key: op, value: read}, {key: priority, value: batch}, {key: x}], algorithm: fixed_window, limit: 100, window: 1m}
`

func parseClasses(t *testing.T) *Document {
	t.Helper()
	d, err := Parse("limits.yaml", []byte(classesDocument))
	suite.Must(t, err)
	return d
}

// TestClassOfARequest: the descriptor says the class, and is no part of the key. Who says none, or
// one that the limit does not have, may use all.
func TestClassOfARequest(t *testing.T) {
	d := parseClasses(t)
	m, calls := d.Compile(), &d.Limits[0]
	for value, want := range map[string]string{"batch": "0.6 true", "interactive": "1 true", "bulk": "1 false", "": "1 false"} {
		descriptors := map[string]string{"account": "42"}
		if value != "" {
			descriptors["priority"] = value
		}
		met := m.Append(nil, "api", descriptors)
		if len(met) != 1 || met[0] != calls || calls.Bucket(descriptors) != calls.Bucket(map[string]string{"account": "42"}) {
			t.Fatalf("%q meets %v", value, met)
		}
		c, known := calls.ClassOf(descriptors)
		if got := c.Part.String() + map[bool]string{true: " true", false: " false"}[known]; got != want || known && c.Name != value {
			t.Errorf("%q is %q of %s, want %s", value, c.Name, got, want)
		}
	}
	list := []KeyValue{{"priority", "batch"}, {"account", "42"}}
	if c, known := calls.ClassOfList(list); !known || c.Name != "batch" {
		t.Errorf("a list says %v", c)
	}
}

// TestClassBehindAPath: over entries the class is a list's last descriptor. The walk passes over
// it, so that the list meets what it would without, and counts together with that. A map may have
// it, too.
func TestClassBehindAPath(t *testing.T) {
	d := parseClasses(t)
	m, path := d.Compile(), &d.Limits[1]
	plain := []KeyValue{{"account", "42"}, {"op", "read"}}
	bucket := string(path.AppendBucketOf(nil, plain))
	for value, known := range map[string]bool{"batch": true, "bulk": false} {
		list := append(plain[:2:2], KeyValue{"priority", value})
		met, _ := m.AppendList(nil, "gate", list)
		if len(met) != 1 || met[0] != path || string(path.AppendBucketOf(nil, list)) != bucket {
			t.Fatalf("%v meets %v", list, met)
		}
		if c, is := path.ClassOfList(list); is != known || is && c.Name != value {
			t.Errorf("%v is of class %v", list, c)
		}
		descriptors := map[string]string{"account": "42", "op": "read", "priority": value}
		if met := m.Append(nil, "gate", descriptors); len(met) != 1 || met[0] != path || string(path.Bucket(descriptors)) != bucket {
			t.Errorf("%v meets %v", descriptors, met)
		}
	}
	if met, _ := m.AppendList(nil, "gate", plain); len(met) != 1 || met[0] != path {
		t.Errorf("without a class the list meets %v", met)
	}
	for _, other := range [][]KeyValue{append(plain[:2:2], KeyValue{"user", "1"}), {plain[0], {"priority", "batch"}, plain[1]},
		append(plain[:2:2], KeyValue{"priority", "batch"}, KeyValue{"priority", "batch"})} {
		if met, _ := m.AppendList(nil, "gate", other); len(met) > 0 {
			t.Errorf("%v meets %v", other, met)
		}
	}
	deep := append(plain[:2:2], KeyValue{"priority", "batch"}, KeyValue{"x", "1"})
	if met, _ := m.AppendList(nil, "gate", deep); len(met) != 1 || met[0].Name != "longer" {
		t.Errorf("%v meets %v", deep, met)
	}
	e := d.Explain("gate", append(plain[:2:2], KeyValue{"priority", "batch"}), true)
	if !e.Limits[0].Applies || e.Limits[0].Class.Name != "batch" || len(e.Unused(append(plain[:2:2], KeyValue{"priority", "batch"}))) > 0 {
		t.Errorf("explained as %+v", e.Limits[0])
	}
	e = d.Explain("gate", []KeyValue{{"account", "42"}, {"op", "write"}, {"priority", "batch"}}, true)
	if lacks := strings.Join(e.Limits[0].Lacks, "; "); lacks != `op is "write", and must be "read"` {
		t.Errorf("lacks %s", lacks)
	}
}

// TestClassesInTheEpoch: other classes are another document, and the same buckets.
func TestClassesInTheEpoch(t *testing.T) {
	d := parseClasses(t)
	for _, change := range []string{"batch: 0.5", "bulk: 0.6", "interactive: 0.9"} {
		old := map[string]string{"batch: 0.5": "batch: 0.6", "bulk: 0.6": "batch: 0.6", "interactive: 0.9": "interactive: 1"}[change]
		other, err := Parse("limits.yaml", []byte(strings.Replace(classesDocument, old, change, 1)))
		suite.Must(t, err)
		if other.Epoch() == d.Epoch() {
			t.Errorf("%s has the epoch of %s", change, old)
		}
		who := map[string]string{"account": "42"}
		if other.Limits[0].Bucket(who) != d.Limits[0].Bucket(who) {
			t.Errorf("%s has other buckets than %s", change, old)
		}
	}
	one, err := Parse("limits.yaml", []byte(strings.Replace(classesDocument, "batch: 0.6, interactive: 1", "interactive: 1.0, batch: 0.60", 1)))
	suite.Must(t, err)
	if one.Epoch() != d.Epoch() {
		t.Error("the order of classes, and how their parts are written, is in the epoch")
	}
}
