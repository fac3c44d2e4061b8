package show

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"eu/n1, Zürich 東京\tok\n":  "eu/n1, Zürich 東京\tok\n",
		"\x1b[2J\x1b]0;title\x07": `\x1b[2J\x1b]0;title\x07`,
		"\u009b31m":               `\x9b31m`,
		"\x9b31m":                 `\x9b31m`,
		"a\u202eb\r":              `a\u202eb\x0d`,
		"\U000e0001":              `\U000e0001`,
		"\ufffd":                  "\ufffd",
	} {
		if got := Visible(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// FuzzVisibleJSON: the shown JSON has the same meaning, as far as it is text, and no terminal acts
// on it.
func FuzzVisibleJSON(f *testing.F) {
	f.Add("\x1b[31m")
	f.Add("\u009b\u202e\U000e0001")
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?")
		quoted, err := json.Marshal(text)
		suite.Must(t, err)
		shown := VisibleJSON(string(quoted))
		if shown != Visible(shown) {
			t.Errorf("%q is shown with what does not print", shown)
		}
		var again string
		if err := json.Unmarshal([]byte(shown), &again); err != nil || again != text {
			t.Errorf("%q became %q, %v", text, again, err)
		}
	})
}

// TestName: plain names are unchanged.
func TestName(t *testing.T) {
	for in, want := range map[string]string{"us-east/n1": "us-east/n1", "Zürich": "Zürich",
		"a\nb": `"a\nb"`, "\u202e": `"\u202e"`, "\xff": `"\xff"`,
		strings.Repeat("x", 200): strings.Repeat("x", 128) + "...", "": ""} {
		if got := Name(in); got != want {
			t.Errorf("%s", fmt.Sprintf("%q is shown as %s, want %s", in, got, want))
		}
	}
}
