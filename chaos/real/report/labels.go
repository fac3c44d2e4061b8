package report

import (
	"cmp"
	"slices"
)

// lineHeight is the minimum distance between two labels, in pixels.
const lineHeight = 13.5

// label is a text in the right margin, beside the thing that it names.
type label struct {
	y      float64 // preferred position
	text   string
	class  string // class of the text
	swatch string // class of the square before it; "": none
}

// labels writes texts into the right margin, each as near to its preferred position as the others
// allow. It leaves out those that do not fit.
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
			room *= 0.9 // bold text is wider
		}
		d.text(l.class, x, l.y+4, fit(l.text, room))
	}
}
