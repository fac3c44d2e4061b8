package bench

import (
	"math/rand/v2"
	"strconv"
)

// The ways in which calls spread over the keys.
const (
	uniform = "uniform"
	oneKey  = "one"
	zipf    = "zipf"
)

// spreads lists the values of Bench.Keys.
var spreads = []string{uniform, oneKey, zipf}

// zipfExponent makes a key's share of the calls proportional to 1 / rank^zipfExponent.
const zipfExponent = 1.1

// chooser returns a function that chooses the key of each request: a number below among. The same
// seeds give the same keys.
func chooser(spread string, among int, round, caller uint64) func() int {
	random := rand.New(rand.NewPCG(round, caller))
	switch spread {
	case oneKey:
		return func() int { return 0 }
	case zipf:
		z := rand.NewZipf(random, zipfExponent, 1, uint64(among-1))
		return func() int { return int(z.Uint64()) }
	}
	return func() int { return random.IntN(among) }
}

// keyName returns the value of the descriptor for a key. All have the same length.
func keyName(number int) string { return "k" + strconv.Itoa(maxAmong+number) }

// bucketName returns a name for a bucket of a key, of which the key has one for each of its limits:
// for the first the key itself.
func bucketName(key string, limit int) string {
	if limit == 0 {
		return key
	}
	return key + "/" + strconv.Itoa(limit+1)
}
