package oracle

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// The numbers are compared with math/big, which has no largest one.
func TestWideAgainstBig(t *testing.T) {
	most := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(1))
	toBig := func(w wide) *big.Int {
		b := new(big.Int).SetUint64(w.hi)
		return b.Lsh(b, 64).Add(b, new(big.Int).SetUint64(w.lo))
	}
	suite.Check(t, func(t *rapid.T) {
		number := rapid.Int64Range(0, math.MaxInt64)
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		if got, want := toBig(product(a, b)), new(big.Int).Mul(big.NewInt(a),
			big.NewInt(b)); got.Cmp(want) != 0 {
			t.Fatalf("%d * %d = %v, want %v", a, b, got, want)
		}
		x := wide{rapid.Uint64().Draw(t, "x.hi"), rapid.Uint64().Draw(t, "x.lo")}
		y := wide{rapid.Uint64().Draw(t, "y.hi"), rapid.Uint64().Draw(t, "y.lo")}
		sum := new(big.Int).Add(toBig(x), toBig(y))
		if sum.Cmp(most) > 0 {
			sum = most
		}
		if got := toBig(x.plus(y)); got.Cmp(sum) != 0 {
			t.Fatalf("%v + %v = %v, want %v", toBig(x), toBig(y), got, sum)
		}
		difference := new(big.Int).Sub(toBig(x), toBig(y))
		if difference.Sign() < 0 {
			difference.SetInt64(0)
		}
		if got := toBig(x.minus(y)); got.Cmp(difference) != 0 {
			t.Fatalf("%v - %v = %v, want %v", toBig(x), toBig(y), got, difference)
		}
		d := rapid.Int64Range(1, math.MaxInt64).Draw(t, "d")
		small := product(a, b)
		quotient, rest := new(big.Int).QuoRem(toBig(small), big.NewInt(d), new(big.Int))
		if rest.Sign() > 0 {
			quotient.Add(quotient, big.NewInt(1))
		}
		want := int64(math.MaxInt64)
		if quotient.IsInt64() {
			want = quotient.Int64()
		}
		if got := small.over(d); got != want {
			t.Fatalf("%v / %d = %d, want %d", toBig(small), d, got, want)
		}
	})
}
