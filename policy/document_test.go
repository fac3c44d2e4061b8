package policy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy/strictyaml"
	"github.com/quotad/quotad/quantity"
)

func mustParse(t testing.TB, src string) *Document {
	t.Helper()
	doc, err := Parse("limits.yaml", []byte(src))
	suite.Must(t, err)
	return doc
}

// usual is a limit that leaves to the defaults what it can.
func usual(l Limit) Limit {
	l.Alias, l.Weights = l.Name, []quantity.Units{20, 40, 40}
	l.BorrowingLimit, l.LendingLimit = Unlimited, DefaultLendingLimit
	l.OnExhausted, l.OnStoreFailure, l.Consistency = ExhaustedDeny, StoreFailureLocal, Exact
	l.Charge, l.SettleWithin = ChargeAdmitted, min(max(l.Window, 10*time.Minute), time.Hour)
	return l
}

// TestParseFillsEveryField reads a document with one entry that gives every field, and one that
// leaves all it can to the defaults.
func TestParseFillsEveryField(t *testing.T) {
	path := filepath.Join("testdata", "limits.yaml")
	doc, err := Load(path)
	suite.Must(t, err)
	if doc.Version != 3 {
		t.Errorf("version %d, want 3", doc.Version)
	}
	regions := []Region{{"ap-south", 20}, {"eu-west", 40}, {"us-east", 40}}
	if !reflect.DeepEqual(doc.Regions, regions) {
		t.Errorf("regions %v, want %v", doc.Regions, regions)
	}
	limits := []Limit{{
		Index:          0,
		Pos:            strictyaml.Position{File: path, Line: 8, Column: 5},
		Name:           "account-minute",
		Alias:          "account-minute",
		Domain:         "api",
		Key:            []string{"account"},
		Match:          []Condition{{"plan", "free"}},
		Algorithm:      FixedWindow,
		Limit:          1000,
		Window:         time.Minute,
		Weights:        []quantity.Units{0, 1, 1},
		BorrowingLimit: PPMOne / 2,
		LendingLimit:   900_000,
		OnExhausted:    ExhaustedBorrow,
		OnStoreFailure: StoreFailureDeny,
		Consistency:    Exact,
		Charge:         ChargeAdmitted,
		SettleWithin:   10 * time.Minute,
		Shadow:         true,
	}, usual(Limit{
		Index:        1,
		Pos:          strictyaml.Position{File: path, Line: 21, Column: 5},
		Name:         "address-hour",
		Domain:       "api",
		Key:          []string{"account", "address"},
		Algorithm:    FixedWindow,
		Limit:        MaxLimit,
		Window:       time.Hour,
		LocalReserve: 250_000,
	}), usual(Limit{
		Index:     2,
		Pos:       strictyaml.Position{File: path, Line: 29, Column: 5},
		Name:      "account-rate",
		Domain:    "api",
		Key:       []string{"account"},
		Algorithm: TokenBucket,
		Limit:     100,
		Window:    time.Second,
		Burst:     500,
	}), usual(Limit{
		Index:     3,
		Pos:       strictyaml.Position{File: path, Line: 36, Column: 5},
		Name:      "mail-queue",
		Domain:    "mail",
		Key:       []string{"account"},
		Algorithm: LeakyBucket,
		Limit:     60,
		Window:    time.Minute,
		Burst:     60,
	})}
	if len(doc.Limits) != len(limits) {
		t.Fatalf("%d limits, want %d", len(doc.Limits), len(limits))
	}
	for i := range limits {
		if !reflect.DeepEqual(&doc.Limits[i], parsed(limits[i])) {
			t.Errorf("limits[%d]\n got %+v\nwant %+v", i, doc.Limits[i], *parsed(limits[i]))
		}
	}
}

func TestAcceptedForms(t *testing.T) {
	const plain = `
version: 1
regions: {eu: {weight: 1}}
limits: [{name: a, domain: api, key: [k], algorithm: fixed_window, limit: 1, window: 1m}]
`
	forms := map[string]string{
		"byte order mark":       "\ufeff" + plain[1:],
		"carriage returns":      strings.ReplaceAll(plain, "\n", "\r\n"),
		"document start":        "# policy\n---" + plain,
		"document end":          plain + "...\n",
		"quoted names":          strings.ReplaceAll(plain, "name: a", `"name": 'a'`),
		"quoted window":         strings.ReplaceAll(plain, "1m", `"1m"`),
		"a region called no":    strings.ReplaceAll(plain, "eu:", "no:"),
		"trailing tab":          strings.ReplaceAll(plain, "version: 1", "version: 1\t# one"),
		"name in another field": strings.ReplaceAll(plain, "domain: api", "domain: a"),
	}
	for name, src := range forms {
		t.Run(name, func(t *testing.T) { mustParse(t, src) })
	}
}

// TestRefusedCharacters has the cases that a text file of cases cannot hold.
func TestRefusedCharacters(t *testing.T) {
	for src, want := range map[string]string{
		"version: 1\nx: \xff\n":     "l:2:4: character U+FFFD is not allowed",
		"\xff\xfev\x00e\x00":        "l:1:1: character U+FFFD is not allowed",
		"version: 1\rregions: {}\r": "l:1:11: character U+000D is not allowed",
		"é: \x1b[2J\n":              "l:1:4: character U+001B is not allowed",
	} {
		_, err := Parse("l", []byte(src))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", src, err, want)
		}
	}
}

// TestCarriageReturnsMoveNothing expects the same errors at the same places, whichever way lines
// end, also for quoted text over several lines.
func TestCarriageReturnsMoveNothing(t *testing.T) {
	const text = "version: \"\n\n\"\nregions: {eu: {weight: 0}}\nlimits: x\n"
	_, want := Parse("limits.yaml", []byte(text))
	_, got := Parse("limits.yaml", []byte(strings.ReplaceAll(text, "\n", "\r\n")))
	if want == nil || got == nil || got.Error() != want.Error() {
		t.Errorf("got:\n%v\nwant:\n%v", got, want)
	}
}

// TestErrorsAreBounded reads a document with more problems than the report may have.
func TestErrorsAreBounded(t *testing.T) {
	src := "version: 1\nregions: {eu: {weight: 1}}\nlimits:\n" + strings.Repeat("  - x\n",
		2*strictyaml.MaxErrors)
	_, err := Parse("limits.yaml", []byte(src))
	var errs strictyaml.Errors
	if !errors.As(err, &errs) || len(errs) != strictyaml.MaxErrors {
		t.Errorf("%d errors, want the first %d", len(errs), strictyaml.MaxErrors)
	}
}

// TestLargestDocuments parses documents at the largest size. Files below it that consist of nesting
// or keys only must be refused before they cost more than reading them.
func TestLargestDocuments(t *testing.T) {
	suite.OneGoroutine(t)
	const head = "version: 1\nregions: {eu: {weight: 1}}\nlimits:\n"
	fill := func(s string) string {
		return strings.Repeat(s, (MaxDocumentBytes-len(head)-1)/len(s))
	}
	for name, src := range map[string]string{
		"too large":       head + fill("#\n") + "####",
		"open lists":      fill("["),
		"open mappings":   fill("{a: "),
		"dashes":          fill("- "),
		"keys":            fill("a:\n"),
		"keys in entries": "limits:\n" + fill("  a:\n"),
		"documents":       fill("---\n"),
		"question marks":  fill("? "),
		"aliases":         fill("- *a\n"),
		"open quote":      `"` + fill("a"),
		"empty entries":   head + fill("-\n"),
		"one long line":   fill("a "),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("limits.yaml", []byte(src))
			if err == nil {
				t.Fatal("accepted")
			}
			checkErrors(t, []byte(src), err)
		})
	}
}

// TestSource checks that Source returns the very text, whatever the caller does with its own copy,
// and that its layout is not part of the epoch.
func TestSource(t *testing.T) {
	const text = "\ufeff# policy\r\nversion: 1\r\nregions: {eu: {weight: 1}}\r\n" +
		"limits: [{name: a, domain: api, key: [k], algorithm: fixed_window, limit: 1, window: 1m}]\r\n"
	src := []byte(text)
	doc, err := Parse("limits.yaml", src)
	suite.Must(t, err)
	clear(src)
	if got := string(doc.Source()); got != text {
		t.Errorf("Source() = %q, want %q", got, text)
	}
	again := mustParse(t, string(doc.Source()))
	if plain := mustParse(t,
		strings.TrimPrefix(text, "\ufeff# policy\r\n")); again.Epoch() != doc.Epoch() ||
		plain.Epoch() != doc.Epoch() {
		t.Errorf("epochs %s, %s and %s of one document", doc.Epoch(), again.Epoch(), plain.Epoch())
	}
}

func TestRegionIndex(t *testing.T) {
	doc := mustParse(t, `
version: 1
regions: {c: {weight: 3}, a: {weight: 1}, b: {weight: 2}}
limits: [{name: a, domain: api, key: [k], algorithm: fixed_window, limit: 1, window: 1m, weights: {b: 7}}]
`)
	for i, name := range []string{"a", "b", "c"} {
		if got, ok := doc.RegionIndex(name); got != i || !ok {
			t.Errorf("RegionIndex(%q) = %d, %v, want %d", name, got, ok, i)
		}
	}
	if i, ok := doc.RegionIndex("d"); ok {
		t.Errorf("RegionIndex of an unknown region = %d", i)
	}
	if want := []quantity.Units{0, 7, 0}; !reflect.DeepEqual(doc.Limits[0].Weights, want) {
		t.Errorf("weights %v, want %v: parallel to the sorted regions", doc.Limits[0].Weights, want)
	}
}

func TestLoadSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "limits.yaml")
	_, err := Load(missing)
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "check the path") {
		t.Errorf("missing file: %v", err)
	}
	_, err = Load(dir)
	if err == nil || !strings.Contains(err.Error(), "readable file") {
		t.Errorf("directory: %v", err)
	}
	suite.Must(t, os.WriteFile(missing, []byte("version: 0"), 0o600))
	_, err = Load(missing)
	var errs strictyaml.Errors
	if !errors.As(err, &errs) || errs[0].Pos.File != missing {
		t.Errorf("invalid file: %v", err)
	}
}

// TestCounts checks documents with the largest numbers of things.
func TestCounts(t *testing.T) {
	parse := func(regions, conditions int) error {
		var names, match []string
		for i := range regions {
			names = append(names, fmt.Sprintf("r%d: {weight: 1}", i))
		}
		for i := range conditions {
			match = append(match, fmt.Sprintf("d%d: x", i))
		}
		_, err := Parse("l", fmt.Appendf(nil, "version: 1\nregions: {%s}\nlimits:\n"+
			"- {name: a, domain: api, key: [k], match: {%s}, algorithm: fixed_window, limit: 1, window: 1m}\n",
			strings.Join(names, ", "), strings.Join(match, ", ")))
		return err
	}
	if err := parse(MaxRegions, MaxConditions); err != nil {
		t.Errorf("as many as allowed: %v", err)
	}
	const want = "l:2:10: regions: 65 regions; name at most 64\nl:4:43: limits[0].match: 9 conditions; use at most 8"
	if err := parse(MaxRegions+1, MaxConditions+1); err == nil || err.Error() != want {
		t.Errorf("one more:\ngot  %v\nwant %s", err, want)
	}
}
