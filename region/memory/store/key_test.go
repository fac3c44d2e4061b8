package store

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// awkward are bucket ids that a careless key, pattern or protocol would mix up.
var awkward = []string{
	"", "a", "a ", "A", "{", "}", "{}", "{a}", "a{b", "a}b", "}{", "a\x00", "a\x00b", "\x00",
	"a\r\nb", "\r\n", "a\nb",
	"*", "a*", "?", "[a]", "$1", "token", "b:a", ":", "1:a:1:b", "\xff\xfe", "a\xc3", "\xc3\xa9",
	"e\u0301", "'\"\\",
	strings.Repeat("x", 4096), strings.Repeat("x", 4095) + "y",
}

// TestAwkwardKeys: every id is a bucket of its own, found again under the same id.
func TestAwkwardKeys(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		s := node(t, server, first)
		cell := decide(t, s, charge("a", 1000)).Buckets[0].Cell
		for i, id := range awkward {
			n := quantity.Units(i + 1)
			if d := decide(t, s, charge(id, 1000, n)); d.Status != algorithms.StatusOK ||
				admitted(d) != 1 || d.Buckets[0].Used != n {
				t.Errorf("id %.20q: %+v, want %d used", id, d, n)
			}
			if g := lend(t, s, algorithms.Lend{Fence: under(epoch),
				Target: algorithms.Target{Key: BucketKey(Whole, id), Terms: terms(1000)},
				Debit:  algorithms.Debit{Peer: "us", Cell: cell, Lent: 2 * n, Cap: 1000}}); g.Row.Lent != 2*n {
				t.Errorf("id %.20q: lent %+v, want %d", id, g, 2*n)
			}
		}
		want := []string{TokenKey(Whole)}
		for i, id := range awkward {
			n := quantity.Units(i + 1)
			if got := inspect(t, s, id, terms(1000)); got.Used != n || len(got.Rows) != 1 ||
				got.Rows[0].Lent != 2*n {
				t.Errorf("id %.20q: %+v, want %d used", id, got, n)
			}
			want = append(want, BucketKey(Whole, id))
		}
		got, err := fixtures.Operator(t, server).Keys(t.Context(), "*").Result()
		suite.Must(t, err)
		slices.Sort(want)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%d keys, want %d:\n%.200q\n%.200q", len(got), len(want), got, want)
		}
		// Redis Cluster hashes what is between the first brace and the next closing one
		for _, key := range got {
			if !strings.HasPrefix(key, "{quotad}") {
				t.Errorf("key %.20q has another hash tag", key)
			}
		}
	})
}

// TestKeysOutliveTheirUse: a bucket's hash lasts until a second after the end of the next cell,
// whichever call wrote it first; the token lasts for ever.
func TestKeysOutliveTheirUse(t *testing.T) {
	const slack = algorithms.KeySlack / 1000 // milliseconds
	writes := map[string]func(t *testing.T, s *Store, key string, of algorithms.Terms,
		cell quantity.Cell){
		"decide": func(t *testing.T, s *Store, key string, of algorithms.Terms, _ quantity.Cell) {
			decide(t, s, algorithms.Decide{Fence: under(epoch), Commit: true,
				Costs: []quantity.Units{1},
				Buckets: []algorithms.LimitTarget{{Target: algorithms.Target{Key: key,
					Terms: of}}}})
		},
		"lend": func(t *testing.T, s *Store, key string, of algorithms.Terms, cell quantity.Cell) {
			lend(t, s, algorithms.Lend{Fence: under(epoch), Target: algorithms.Target{Key: key,
				Terms: of},
				Debit: algorithms.Debit{Peer: "us", Cell: latest(of, cell), Lent: 1, Cap: 1}})
		},
		"credit": func(t *testing.T, s *Store, key string, of algorithms.Terms,
			cell quantity.Cell) {
			credit(t, s, algorithms.Credit{Fence: under(epoch), Target: algorithms.Target{Key: key,
				Terms: of},
				Announcement: algorithms.Announcement{Peer: "us", PeerGeneration: 1, Cell: latest(of, cell), Lent: 1, Most: 10}})
		},
	}
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		s, client := node(t, server, first), fixtures.Operator(t, server)
		for name, write := range writes {
			for _, window := range []int64{60_000_000, 3_600_000_000, 30 * 86_400_000_000} {
				of := algorithms.Terms{Kind: algorithms.FixedWindow, Window: window, Cell: window,
					Tick: 1, Entitlement: 10}
				id := name + strconv.FormatInt(window, 10)
				before := inspect(t, s, id, of)
				write(t, s, BucketKey(Whole, id), of, before.Cell)
				left := client.PTTL(t.Context(), BucketKey(Whole, id)).Val().Milliseconds()
				now := quantity.StoreTime(client.Time(t.Context()).Val().UnixMilli())
				// The script may have run a cell later than we looked; then the key lasts longer
				// still. A second is allowed for the server's clock moving on inside the script.
				end := (before.Cell+2).OpensAt(window)/1000 + slack
				if now.Add(left) < end-1000 {
					t.Errorf("%s, window %d: the key ends at %d, want %d or later", name, window,
						now.Add(left), end)
				}
				if most := 2*window/1000 + slack + 1; left > most {
					t.Errorf("%s, window %d: the key lasts %d ms, want at most %d", name, window,
						left, most)
				}
			}
		}
		if ttl := client.TTL(t.Context(), TokenKey(Whole)).Val(); ttl != -1 {
			t.Errorf("the token lasts %v, want for ever", ttl)
		}
	})
}

// latest returns the last cell of which rows are moved in a cell, early in it.
func latest(of algorithms.Terms, cell quantity.Cell) quantity.Cell {
	if of.Kind == algorithms.FixedWindow && of.Window > algorithms.Advance {
		return cell
	}
	return cell + 1
}

// TestWalkShowsEveryBucket: a walk through a Redis that has other keys, too, shows all buckets that are
// there all the while.
func TestWalkShowsEveryBucket(t *testing.T) {
	server := fixtures.Process(t)
	admin := fixtures.Operator(t, server)
	s := connect(t, Options{URL: server.URL})
	mustOpen(t, s, as("n1", 0, nil))
	want := map[string]bool{}
	for i := range 2500 {
		id := fmt.Sprintf("bucket %d", i)
		want[id] = true
		suite.Must(t, admin.HSet(t.Context(), BucketKey(Whole, id), "x", "1").Err(),
			admin.Set(t.Context(), fmt.Sprint("somebody else's ", i), "1", 0).Err(),
			admin.Set(t.Context(), OnceKey(Whole, id), "1", 0).Err())
	}
	got, pages := map[string]bool{}, 0
	for from := uint64(0); pages == 0 || from != 0; pages++ {
		page, err := s.Walk(t.Context(), Whole, from, 100)
		suite.Must(t, err)
		for _, id := range page.Buckets {
			got[id] = true
		}
		if pages == 3 {
			suite.Must(t, admin.Del(t.Context(), BucketKey(Whole, "bucket 7")).Err())
			delete(want, "bucket 7")
			delete(got, "bucket 7")
		}
		from = page.Next
	}
	if pages < 10 {
		t.Errorf("the walk took %d pages", pages)
	}
	delete(got, "bucket 7")
	if !maps.Equal(got, want) {
		t.Errorf("%d buckets are shown, %d are there: missing %.200q", len(got), len(want), slices.Sorted(maps.Keys(minus(want, got))))
	}
}

func minus(a, b map[string]bool) map[string]bool {
	left := maps.Clone(a)
	maps.DeleteFunc(left, func(k string, _ bool) bool { return b[k] })
	return left
}

// TestSize: what a server holds is counted: the token, and a key for each bucket.
func TestSize(t *testing.T) {
	server := kinds["process"].start(t)
	s := node(t, server, first)
	before, err := s.Size(t.Context())
	if err != nil || !before.Reported || before.Keys != 1 || before.Bytes <= 0 {
		t.Fatalf("an opened store: %+v, %v", before, err)
	}
	for _, id := range []string{"a", "b", "c"} {
		serves(t, s, id)
	}
	if after, err := s.Size(t.Context()); err != nil || after.Keys != 4 || after.Bytes <= 0 {
		t.Errorf("with three buckets: %+v, %v", after, err)
	}
	e := node(t, kinds["embedded"].start(t), first)
	if got, err := e.Size(t.Context()); err != nil || got.Reported && got.Bytes <= 0 {
		t.Errorf("the embedded Redis: %+v, %v", got, err)
	}
}
