package store

import (
	"errors"
	"strings"
	"testing"

	"github.com/quotad/quotad/algorithms"
)

// TestRefused: every status but OK is an error that says what happens next, and none is taken for a
// server that does not answer.
func TestRefused(t *testing.T) {
	of := algorithms.InspectScript
	if err := refused(of, algorithms.Head{Now: 7}); err != nil {
		t.Errorf("OK is %v", err)
	}
	for s := algorithms.StatusUnknown; s <= algorithms.StatusCrowded+1; s++ {
		err := refused(of, algorithms.Head{Status: s, Now: 7_000_000, LostAt: 5_000_000, Lost: 2})
		why, is := errors.AsType[*Refused](err)
		if !is || why.Status != s || why.Call != of.Name || !Answered(err) || Unreached(err) ||
			Late(err) {
			t.Errorf("%v: %+v", s, err)
		}
		if errors.Is(err, ErrUnknownStore) != (s == algorithms.StatusUnknown) {
			t.Errorf("%v is an unknown store: %v", s, err)
		}
		if _, said := whyRefused[s]; said == (s == algorithms.StatusLost ||
			s > algorithms.StatusCrowded) {
			t.Errorf("%v: nothing, or too much, says why", s)
		}
		lost, is := errors.AsType[*LostBucket](err)
		if is != (s == algorithms.StatusLost) {
			t.Errorf("%v is a lost bucket: %v", s, err)
		}
		if is && (lost.Place != 2 || lost.LostAt != 5_000_000 || lost.AnsweredAt != 7_000_000 ||
			!strings.Contains(err.Error(), "at 1970-01-01T00:00:05Z")) {
			t.Errorf("%+v: %v", lost, err)
		}
	}
	if err := errors.New("any other"); Answered(err) || !Unreached(err) {
		t.Errorf("%v counts as an answer", err)
	}
}
