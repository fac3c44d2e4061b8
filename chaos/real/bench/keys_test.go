package bench

import "testing"

// TestKeys: keys are in range, and are spread as they are named.
func TestKeys(t *testing.T) {
	const asked = 20_000
	for _, c := range []struct {
		spread      string
		among       int
		least, most float64 // part of the requests that go to the first key
	}{
		{oneKey, 100, 1, 1},
		{uniform, 1, 1, 1},
		{uniform, 100, 0.005, 0.015},
		{zipf, 1, 1, 1},
		{zipf, 100, 0.15, 0.35},
	} {
		choose, again := chooser(c.spread, c.among, 3, 4), chooser(c.spread, c.among, 3, 4)
		first := 0
		for range asked {
			key := choose()
			if key < 0 || key >= c.among {
				t.Fatalf("%s among %d chooses %d", c.spread, c.among, key)
			}
			if key != again() {
				t.Fatalf("%s among %d differs between two runs", c.spread, c.among)
			}
			if key == 0 {
				first++
			}
		}
		if part := float64(first) / asked; part < c.least || part > c.most {
			t.Errorf("%s among %d asks for the first key in %.3f of all requests", c.spread,
				c.among, part)
		}
	}
}
