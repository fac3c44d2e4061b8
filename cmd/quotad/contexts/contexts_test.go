package contexts

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestWhatIsWrittenIsRead: whatever addresses and paths a person names.
func TestWhatIsWrittenIsRead(t *testing.T) {
	folder := t.TempDir()
	text := rapid.StringMatching(`[ -~é\\"':#]{0,20}`)
	suite.Check(t, func(t *rapid.T) {
		path := filepath.Join(folder, "deeper", "contexts.yaml")
		var want File
		for _, name := range rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Za-z0-9._-]{1,8}`), 0, 4,
			rapid.ID[string]).Draw(t, "names") {
			c := Context{Name: name}
			for _, one := range c.fields() {
				*one.text = text.Draw(t, one.name)
			}
			if c == (Context{Name: name}) {
				c.Admin = "localhost"
			}
			if err := want.Put(c); err != nil {
				t.Fatal(err)
			}
			want.Current = name
		}
		if err := want.Save(path); err != nil {
			t.Fatal(err)
		}
		if got, err := Load(path); err != nil || !reflect.DeepEqual(got, want) {
			written, _ := os.ReadFile(path)
			t.Fatalf("%+v, want %+v: %v\n%s", got, want, err, written)
		}
		for _, c := range slices.Clone(want.Contexts) {
			if err := want.Remove(c.Name); err != nil {
				t.Fatal(err)
			}
		}
		if want.Current != "" || len(want.Contexts) != 0 {
			t.Fatalf("left after all were removed: %+v", want)
		}
	})
	if info, err := os.Stat(filepath.Join(folder, "deeper", "contexts.yaml")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestBadFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "contexts.yaml")
	if f, err := Load(path); err != nil || len(f.Contexts) != 0 {
		t.Errorf("no file: %+v, %v", f, err)
	}
	for text, want := range map[string]string{
		"contexts: {a: {adminn: b}}":                "did you mean",
		"contexts: {\"a b\": {admin: c}}":           "cannot be named",
		"contexts: [a]":                             "contexts",
		"current: {a: b}":                           "current",
		"contexts: {a: {admin: [b]}}":               "admin",
		strings.Repeat("# a comment\n", 256<<10/11): "check the path",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %s", text, err, want)
		}
	}
	f := File{Contexts: []Context{{Name: "prod"}}}
	if _, err := f.Find("prdo"); err == nil || !strings.Contains(err.Error(), "did you mean") {
		t.Errorf("%v", err)
	}
	for range MaxContexts - 1 {
		f.Contexts = append(f.Contexts, Context{})
	}
	if f.Put(Context{Name: "more"}) == nil || f.Put(Context{Name: "a/b"}) == nil ||
		f.Remove("none") == nil || f.Put(Context{Name: "prod", Admin: "x"}) != nil {
		t.Error("bounds and names are not held")
	}
}
