package report

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestScatterStandsByItself(t *testing.T) {
	s := Scatter{Title: "a <title>", Note: "a note", Across: "across", Up: "up & above"}
	for i, name := range []string{"split", "a <name> & more", "central", "quotad", "borrowing"} {
		at := Mark{X: float64(i * i), Y: float64(i), Text: name}
		s.Groups = append(s.Groups, Group{Name: name, Mean: at, Marks: []Mark{at, {Text: "none"}}})
	}
	for groups, picture := range map[int]string{len(s.Groups): s.SVG(), 0: Scatter{}.SVG()} {
		d, marks := xml.NewDecoder(strings.NewReader(picture)), 0
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("it is not well-formed: %v\n%.300s", err, picture)
			}
			if e, is := token.(xml.StartElement); is && e.Name.Local == "title" {
				marks++
			}
		}
		if marks != 3*groups {
			t.Errorf("%d marks of %d groups, want %d", marks, groups, 3*groups)
		}
		if strings.Contains(strings.Replace(picture, `xmlns="http://www.w3.org/2000/svg"`, "", 1), "http") ||
			strings.Contains(picture, "url(") && strings.Count(picture, "url(") != strings.Count(picture, "url(#") {
			t.Error("it refers to something outside")
		}
	}
	picture := s.SVG()
	if !strings.Contains(picture, "a &lt;name&gt; &amp; more</text>") || picture != s.SVG() {
		t.Error("a name is missing, or the same chart gave two pictures")
	}
}

func TestScatterScalesRise(t *testing.T) {
	for _, ticks := range [][]float64{acrossTicks, upTicks} {
		last := place(ticks, -1)
		if last != 0 || place(ticks, 0) != 0 {
			t.Errorf("0 lies at %v", last)
		}
		for v := 0.01; v < 2000; v *= 1.3 {
			at := place(ticks, v)
			if at < last || at == last && at < 1 {
				t.Fatalf("%v %% lies at %v, before %v", v, at, last)
			}
			last = at
		}
		if last != 1 {
			t.Errorf("what is beyond the scale lies at %v", last)
		}
	}
}
