package algorithms

import "github.com/quotad/quotad/quantity"

// Whole is the part of a request that may use all of what a region holds.
const Whole quantity.PPM = 1_000_000

// Portion returns a part of units, rounded down. Units that are not above 0 stay as they are.
func Portion(units quantity.Units, part quantity.PPM) quantity.Units {
	if part >= Whole || units <= 0 {
		return units
	}
	all, rest := units/quantity.Units(Whole), units%quantity.Units(Whole)
	return all*quantity.Units(part) + rest*quantity.Units(part)/quantity.Units(Whole)
}

// Withheld returns how many units of a bucket a request of a part may not use: of a window those of
// its share, of a token_bucket those of its capacity.
func (s *State) Withheld(k Kind, part quantity.PPM) quantity.Units {
	has := s.Share
	if k.Bucket() {
		has = s.Used + s.Free
	}
	return has - Portion(has, part)
}

// Part returns the part of a bucket's rights that a request may use, by their places.
func (c *Decide) Part(request, bucket int) quantity.PPM {
	if c.Parts == nil {
		return Whole
	}
	return c.Parts[request*len(c.Buckets)+bucket]
}
