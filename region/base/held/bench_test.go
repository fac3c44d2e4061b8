package held

import (
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// far is the end of a cell that no benchmark reaches, as store time, and plenty are units that none
// uses up.
const (
	far    = quantity.StoreTime(1) << 50
	plenty = algorithms.MaxUnits
)

// BenchmarkDeny is a request that is answered by a remembered denial, of one caller and of many at
// once.
func BenchmarkDeny(b *testing.B) {
	var m Memory
	m.Learn(Answer{Generation: 1, Now: 1, Ends: far, Denied: 1,
		Verdict: algorithms.Verdict{Retry: int64(far) / 2}})
	each(b, func() bool {
		_, denied, _ := m.Deny(1, 1, time.Millisecond)
		return denied
	})
}

// BenchmarkTake is a request that is admitted from a chunk.
func BenchmarkTake(b *testing.B) {
	var m Memory
	m.Filled(&Grant{Units: plenty, Answer: Answer{Generation: 1, Now: 1, Ends: far}})
	each(b, func() bool {
		of, _, _ := m.Take(1, 1, time.Millisecond)
		return of != nil
	})
}

// each measures a decision from memory, which must be made.
func each(b *testing.B, decided func() bool) {
	b.Run("one caller", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if !decided() {
				b.Fatal("the store was to be asked")
			}
		}
	})
	b.Run("many callers", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				if !decided() {
					b.Error("the store was to be asked")
					return
				}
			}
		})
	})
}
