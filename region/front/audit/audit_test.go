package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
)

var quiet = slog.New(slog.DiscardHandler)

// written returns the line of an event, decoded.
func written(t *testing.T, e Event) line {
	t.Helper()
	var b bytes.Buffer
	l := New(&b, "us-east/n1", quiet)
	l.now = func() time.Time { return time.Unix(1_800_000_000, 0) }
	l.Write(e)
	var got line
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, &b)
	}
	return got
}

func TestALineHasTheWholeAct(t *testing.T) {
	e := Event{Act: Reset, Who: "alice", From: "192.0.2.1:5", Outcome: Done, Units: 31,
		Buckets: []Bucket{{Domain: "api", Limit: "account", Key: map[string]string{"account": "42"}}}}
	got := written(t, e)
	if fmt.Sprint(got.Event) != fmt.Sprint(e) || got.Cut || got.Node != "us-east/n1" ||
		got.Time != "2027-01-15T08:00:00Z" {
		t.Errorf("%+v", got)
	}
}

// TestALineIsBounded: whatever callers name, a line is one line, JSON, and no longer than maxLine.
// What is left out is said to be.
func TestALineIsBounded(t *testing.T) {
	suite.Check(t, func(r *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[\x00-\x1f"\\<é]{0,400}`))
		e := Event{Act: Settle, Who: text.Draw(r, "who"), From: text.Draw(r, "from"), Region: text.Draw(r, "region"),
			Detail: text.Draw(r, "detail"), Why: text.Draw(r, "why"), Outcome: Refused}
		for range rapid.IntRange(0, 2*maxBuckets).Draw(r, "buckets") {
			e.Buckets = append(e.Buckets, Bucket{text.Draw(r, "domain"), text.Draw(r, "limit"),
				rapid.MapOfN(text, text, 0, 2*maxKey).Draw(r, "key")})
		}
		b := encode(time.Unix(0, 0), "us-east/n1", e)
		if len(b) > maxLine || bytes.Count(b, []byte("\n")) != 1 || !bytes.HasSuffix(b, []byte("\n")) {
			r.Fatalf("%d bytes: %q", len(b), b)
		}
		var got line
		if err := json.Unmarshal(b, &got); err != nil {
			r.Fatalf("%v: %q", err, b)
		}
		whole := len(got.Buckets) == len(e.Buckets) && len(got.Who) == len(e.Who)
		if !whole && !got.Cut && strings.ToValidUTF8(e.Who, "\ufffd") == e.Who {
			r.Fatalf("something is left out, and the line does not say so: %q", b)
		}
	})
	long := written(t, Event{Who: strings.Repeat("x", maxText+1)})
	if len(long.Who) != maxText || !long.Cut {
		t.Errorf("%+v", long)
	}
}

// TestFilesAreSetAside: the log goes on with a file that is there, and keeps keptFiles when it is
// full.
func TestFilesAreSetAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	n := 0
	for range 2 * (keptFiles + 2) {
		l, err := Open(path, "us-east/n1", quiet) // as a node that starts anew
		suite.Must(t, err)
		l.operators.most, l.callers.most = 1000, 1000
		for range 4 {
			n++
			l.Write(Event{Act: Reset, Units: int64(n), Outcome: Done})
		}
		for range 40 { // callers' acts have no operator's act set aside
			l.Write(Event{Act: Settle, Outcome: Done})
		}
		suite.Must(t, l.Close())
	}
	var all []byte
	for _, old := range []string{".3", ".2", ".1", ""} {
		b, err := os.ReadFile(path + old)
		if err != nil || len(b) == 0 || len(b) > 1000 {
			t.Fatalf("%s: %d bytes, %v", old, len(b), err)
		}
		all = append(all, b...)
	}
	if strings.Contains(string(all), string(Settle)) {
		t.Error("acts of callers stand among those of operators")
	}
	if b, err := os.ReadFile(path + callersSuffix); err != nil || strings.Count(string(b), `"settle"`) == 0 || len(b) > 1000 {
		t.Errorf("%d bytes of acts of callers, %v", len(b), err)
	}
	lines := strings.Split(strings.TrimSpace(string(all)), "\n")
	for i, text := range lines {
		var got line
		if err := json.Unmarshal([]byte(text), &got); err != nil || got.Units != int64(n-len(lines)+1+i) {
			t.Fatalf("line %d: %s, want act %d; %v", i, text, n-len(lines)+1+i, err)
		}
	}
	if _, err := os.Stat(path + ".4"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a fourth older file: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file can be read by others: %v, %v", info.Mode(), err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none", "audit.jsonl")} {
		if _, err := Open(path, "us-east/n1", quiet); err == nil || !strings.Contains(err.Error(), "choose another path") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestALogThatCannotBeWritten counts all that it misses, and says so once a minute, without the
// key.
func TestALogThatCannotBeWritten(t *testing.T) {
	var ordinary bytes.Buffer
	l := New(full{}, "us-east/n1", slog.New(slog.NewJSONHandler(&ordinary, nil)))
	for range 100 {
		l.Write(Event{Act: Reset, Outcome: Done, Buckets: []Bucket{{Limit: "l", Key: map[string]string{"account": "secret"}}}})
	}
	r := prometheus.NewRegistry()
	r.MustRegister(l.Collectors()...)
	families, err := r.Gather()
	if err != nil || len(families) != 2 {
		t.Fatalf("%v, %v", families, err)
	}
	for _, f := range families {
		if got := f.GetMetric()[0].GetCounter().GetValue(); got != 100 {
			t.Errorf("%s is %v, want 100", f.GetName(), got)
		}
	}
	if n := strings.Count(ordinary.String(), "\n"); n != 1 || strings.Contains(ordinary.String(), "secret") ||
		!strings.Contains(ordinary.String(), "no space left") {
		t.Errorf("%d lines: %s", n, ordinary.String())
	}
	(*Log)(nil).Write(Event{}) // writes nothing
	suite.Must(t, (*Log)(nil).Close())
}

// TestOfDocument: the event names the epochs, and the regions that are fenced or removed anew.
func TestOfDocument(t *testing.T) {
	const limit = "name: l, limit: 10, window: 1s"
	both, one := []string{"us: {weight: 1}", "eu: {weight: 1}"}, []string{"us: {weight: 1}"}
	before := documents.Parse(t, 1, both, limit)
	fenced := documents.With(t, "fenced: [eu]", documents.Parse(t, 2, both, limit))
	removed := documents.With(t, "removed: [eu, ap]", documents.Parse(t, 3, one, limit))
	again := documents.With(t, "removed: [eu, ap]", documents.Parse(t, 4, one, limit))
	more := documents.With(t, "fenced: [eu]", documents.Parse(t, 5, both, limit))
	for name, c := range map[string]struct {
		got     Event
		act     Act
		region  string
		removes string
	}{
		"fences":         {OfDocument(before, fenced), Fence, "eu", ""},
		"fences no more": {OfDocument(fenced, more), Document, "", ""},
		"removes":        {OfDocument(fenced, removed), Document, "", "ap,eu"},
		"removed before": {OfDocument(removed, again), Document, "", ""},
	} {
		_, removes, _ := strings.Cut(c.got.Detail, ", removes ")
		if c.got.Act != c.act || c.got.Region != c.region || removes != c.removes ||
			!strings.HasPrefix(c.got.Detail, "epoch ") {
			t.Errorf("%s: %+v", name, c.got)
		}
	}
}
