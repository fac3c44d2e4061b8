package rights

import (
	"fmt"
	"testing"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/quantity"
)

// TestWhoIsGone: a node is gone once the store has not answered it for ten seconds. Who reads the store then
// has all of it, until it is answered again. That says nothing of the reader itself.
func TestWhoIsGone(t *testing.T) {
	var g gone
	at := func(seconds int64) quantity.StoreTime { return quantity.StoreTime(seconds * second) }
	lives := func(node string) bool { return node == "n1" || node == "n2" || node == "n3" }
	named := func(n1, n2, x quantity.StoreTime) {
		g.name(map[string]exchange.Answers{"n1": {Last: n1}, "n2": {Last: n2}, "x": {First: at(3), Last: x}}, 0)
	}
	known := func() (read string) {
		for _, c := range g.known("n1", 0) {
			if c.Until > 0 {
				read += fmt.Sprintf("%+v", c)
			}
		}
		return read
	}

	named(at(100), at(100), at(95))
	if g.toRead("n1", at(105), lives) || !g.toRead("n1", at(105)+1, lives) || g.toRead("n3", at(106), lives) {
		t.Error("x is gone after ten seconds, and the first two nodes read")
	}
	named(at(119), at(119), at(95))
	g.read("n1", at(7), at(120))
	if got := known(); got != fmt.Sprintf("{Node:x Since:%d Until:%d Rows:true Settled:0 First:%d Answered:%d Read:%d}", at(7), at(120), at(3), at(95), at(120)) {
		t.Errorf("read: %s", got)
	}
	if g.toRead("n1", at(130), lives) || g.readBy("n1") != 0 {
		t.Errorf("read again: %t, and n1 itself as of %d", g.toRead("n1", at(130), lives), g.readBy("n1"))
	}
	// A later loss does not make what was read any less.
	named(at(139), at(139), at(95))
	g.read("n1", at(130), at(140))
	if got := known(); got != fmt.Sprintf("{Node:x Since:%d Until:%d Rows:true Settled:0 First:%d Answered:%d Read:%d}", at(7), at(120), at(3), at(95), at(120)) {
		t.Errorf("read twice: %s", got)
	}
	named(at(150), at(150), at(149)) // x is answered again
	if got := known(); got != "" {
		t.Errorf("answered again: %s", got)
	}
	g.readAll("n1", at(160))
	if g.readBy("n1") != at(160) || known() != "" {
		t.Errorf("n1 has read as of %d, %s", g.readBy("n1"), known())
	}
	g.name(map[string]exchange.Answers{"n1": {Last: at(161)}}, 0)
	if g.readBy("n1") != at(160) || len(g.names) != 3 {
		t.Errorf("n1 has read as of %d, %d names", g.readBy("n1"), len(g.names))
	}
}
