package wire

import (
	"testing"

	"github.com/quotad/quotad/region/front/asjson"
)

// TestReasonsHaveOneWord: operators read the reasons that callers read.
func TestReasonsHaveOneWord(t *testing.T) {
	for text, number := range Reasons {
		if got := asjson.Word(number); got != string(text) {
			t.Errorf("%v is %s to operators and %s to callers", number, got, text)
		}
	}
}
