package policy

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// FuzzParse checks that any input is either refused, with errors at places that exist, or gives a
// document that keeps every promise of its type.
func FuzzParse(f *testing.F) {
	valid, err := os.ReadFile(filepath.Join("testdata", "limits.yaml"))
	suite.Must(f, err)
	f.Add(valid)
	f.Add([]byte(matchDocument))
	f.Add([]byte(pathsDocument))
	for _, a := range algorithms.Kinds {
		f.Add([]byte(capacityDocument(a, 100_000, 50, 10*time.Millisecond)))
		f.Add([]byte(capacityDocument(a, MaxLimit, 0, MaxWindow)))
	}
	f.Add([]byte(warnedDocument))
	for _, fields := range []string{"window: day", "window: week, starts: saturday",
		"window: month, starts: 31, timezone: Pacific/Apia", "window: year, starts: 02-29",
		"window: month, timezone: Nowhere/Else", "window: 1h, starts: 5"} {
		f.Add([]byte(calendarDocument(fields)))
	}
	for _, fields := range []string{"", "ttl: 15s, no_assignment: 10, max_burst: 20", "ttl: 5s",
		"no_assignment: 100", "max_burst: 99", "max_burst: -1"} {
		f.Add([]byte(assignDocument(fields)))
	}
	for _, fields := range []string{`tier: gold`, `a: [1, -2.5e+3, {b: null, c: true}], "\u2028": "x\n"`, `a: yes`,
		`a: 0x10`, `a: .inf`, `a: {b: {c: {d: {e: {f: {g: {h: 1}}}}}}}`, `a: 1e20, a: 2`, `"\ud800": "\x80"`} {
		f.Add([]byte(metadataDocument(fields)))
	}
	f.Add([]byte("\xff\xfe"))
	f.Add([]byte("\"\t\t\\1"))
	f.Add([]byte("version: 1\rregions:\r"))
	f.Add([]byte("\"\r\n\"0"))
	f.Add([]byte("{version: 1, regions: {a: {weight: 1}}, limits: [{a: [}]"))
	f.Fuzz(func(t *testing.T, src []byte) { checkParse(t, src) })
}

// checkParse checks what Parse promises for any input. It returns the document, nil if Parse
// refuses the input.
func checkParse(t *testing.T, src []byte) *Document {
	t.Helper()
	doc, err := Parse("limits.yaml", src)
	if err != nil {
		checkErrors(t, src, err)
		return nil
	}
	checkDocument(t, doc)
	checkWarnings(t, src, doc.Warnings())
	if !bytes.Equal(doc.Source(), src) {
		t.Errorf("Source() = %q, want %q", doc.Source(), src)
	}
	return doc
}

// checkDocument checks what the types of a document promise.
func checkDocument(t *testing.T, doc *Document) {
	t.Helper()
	if doc.Version < 1 || len(doc.Limits) == 0 || doc.Epoch() != doc.computeEpoch() {
		t.Errorf("version %d, %d limits, epoch %s", doc.Version, len(doc.Limits), doc.Epoch())
	}
	if n := len(doc.Regions); n < 1 || n > MaxRegions {
		t.Errorf("%d regions", n)
	}
	if !slices.IsSortedFunc(doc.Regions,
		func(a, b Region) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("regions %v are not sorted", doc.Regions)
	}
	for _, e := range doc.Exempt {
		checkMetadata(t, e.Metadata)
	}
	m := doc.Compile()
	for i := range doc.Limits {
		l := &doc.Limits[i]
		sum := quantity.Units(0)
		for _, w := range l.Weights {
			sum += w
		}
		if len(l.Weights) != len(doc.Regions) || sum < 1 || l.Limit < 1 || l.Limit > MaxLimit ||
			l.Index != i {
			t.Errorf("limits[%d] = %+v", i, l)
		}
		checkCounted(t, l)
		checkMetadata(t, l.Metadata)
		descriptors := make(map[string]string)
		for _, name := range l.Key {
			descriptors[name] = "v"
		}
		for _, c := range l.Match {
			descriptors[c.Name] = c.Value
		}
		id := l.Bucket(descriptors)
		if l.Entries != nil { // of which others may go before it, for any value
			id = BucketID(l.AppendBucketOf(nil, listFor(l)))
		} else if len(m.Append(nil, l.Domain, descriptors)) == 0 {
			t.Errorf("limits[%d] matches nothing", i)
		}
		ref, err := ParseBucketID(id)
		if err != nil {
			t.Errorf("limits[%d]: %v", i, err)
		}
		if e, ok := m.Entry(ref); !ok || e != l {
			t.Errorf("limits[%d]: Entry finds %+v", i, e)
		}
	}
}

// listFor returns a list that a limit with entries fits.
func listFor(l *Limit) (list []KeyValue) {
	for _, e := range l.Entries {
		list = append(list, KeyValue{e.Name, e.Value})
	}
	return list
}

// checkCounted checks what the algorithm of a limit relies on.
func checkCounted(t *testing.T, l *Limit) {
	t.Helper()
	burst := l.Burst == 0
	if l.Algorithm.Bucket() {
		burst = l.Burst >= 1 && l.Burst <= MaxBurst
	}
	if l.Assign != nil {
		checkAssigned(t, l)
	}
	exact := algorithms.Tick(l.Algorithm, l.Largest(), l.Window.Microseconds()) > 0
	if _, ok := l.Calendar(); ok != (l.Period != "") || ok && l.Algorithm != FixedWindow {
		t.Errorf("limits[%d] = %+v with a calendar: %v", l.Index, l, ok)
	}
	remembered := l.Algorithm != SlidingWindowLog || l.Limit <= MaxLogLimit
	if !slices.Contains(algorithms.Kinds, l.Algorithm) || !burst || !exact || !remembered ||
		l.Cell() <= 0 {
		t.Errorf("limits[%d] = %+v with cells of %s", l.Index, l, l.Cell())
	}
}
