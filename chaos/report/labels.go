package report

import (
	"cmp"
	"slices"
)

// lineHeight is the least distance of two labels.
const lineHeight = 13.5

// label is a text in the right margin, beside what it names.
type label struct {
	y      float64 // where it would like to be
	text   string
	class  string // of the text
	swatch string // class of the square before it, "" for none
}

// labels writes texts into the right margin, each as near to its place as the
// others leave room for. Those that have no room at all are left out.
func (d *drawing) labels(list []label) {
	slices.SortStableFunc(list, func(a, b label) int { return cmp.Compare(a.y, b.y) })
	top, bottom := d.top-2, d.bottom()
	list = list[:min(len(list), int((bottom-top)/lineHeight)+1)]
	for i := range list {
		list[i].y = max(list[i].y, top+float64(i)*lineHeight)
		if i > 0 {
			list[i].y = max(list[i].y, list[i-1].y+lineHeight)
		}
	}
	for i := len(list) - 1; i >= 0; i-- {
		list[i].y = min(list[i].y, bottom-float64(len(list)-1-i)*lineHeight)
		if i+1 < len(list) {
			list[i].y = min(list[i].y, list[i+1].y-lineHeight)
		}
	}
	for _, l := range list {
		x, room := d.end()+6, d.layout.right-6
		if l.swatch != "" {
			d.rect(l.swatch, x, l.y-4, 8, 8)
			x, room = x+12, room-12
		}
		if l.class == "limitname" {
			room *= 0.9 // it is set in bold
		}
		d.text(l.class, x, l.y+4, fit(l.text, room))
	}
}
