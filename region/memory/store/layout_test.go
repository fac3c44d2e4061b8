package store

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// otherLayouts are those of a version of before and of one to come.
var otherLayouts = []int64{algorithms.Layout - 1, algorithms.Layout + 1}

// onLayouts runs a test on each kind of server with each of the other layouts.
func onLayouts(t *testing.T, f func(t *testing.T, server *servers.Server, layout int64)) {
	onBoth(t, func(t *testing.T, kind server) {
		for _, layout := range otherLayouts {
			t.Run(fmt.Sprint("layout ", layout), func(t *testing.T) {
				f(t, kind.start(t), layout)
			})
		}
	})
}

// openedByAnother has another version of quotad open a store that stands, or an empty one. It
// returns the generation that it began.
func openedByAnother(t *testing.T, s *servers.Server, layout int64) uint64 {
	t.Helper()
	before := tokenOf(t, s)
	c := algorithms.Open{Expected: before.Generation, Generation: max(before.Generation, 1<<50) + 1,
		Region: "eu", Epoch: epoch, Secret: "another", Replid: before.Replid, Layout: layout}
	opened := openWith(t, s, c)
	if !opened.OK || opened.Layout != layout {
		t.Fatalf("another version opened %+v", opened)
	}
	return opened.Generation
}

// tokenOf reads the token of a server that is not divided.
func tokenOf(t *testing.T, s *servers.Server) algorithms.Opened {
	t.Helper()
	return openWith(t, s, onlyLook("n"))
}

func openWith(t *testing.T, s *servers.Server, c algorithms.Open) algorithms.Opened {
	t.Helper()
	reply, err := fixtures.Operator(t, s).Eval(t.Context(), algorithms.OpenScript.Source,
		[]string{TokenKey(Whole)}, c.Args()...).Result()
	suite.Must(t, err)
	opened, err := c.Parse(reply)
	suite.Must(t, err)
	return opened
}

// TestOpenAnotherLayout: a store that a version of another layout wrote, an earlier or a later one,
// is opened as after a loss, under another generation. The scripts of that version are refused from
// then on, and the token names the layout of this one.
func TestOpenAnotherLayout(t *testing.T) {
	onLayouts(t, func(t *testing.T, server *servers.Server, layout int64) {
		serves(t, node(t, server, first), "k")
		theirs := openedByAnother(t, server, layout)
		s := connect(t, Options{URL: server.URL})
		got := mustOpen(t, s, Opening{Region: "eu", Epoch: epoch, LastGeneration: theirs})
		if !got.Lost || !got.Foreign || got.FoundLayout != layout || got.Generation <= theirs {
			t.Fatalf("opened %+v, want a loss because of layout %d, above generation %d", got, layout,
				theirs)
		}
		closedCells(t, s, epoch)
		r := s.Decide(t.Context(), []algorithms.Decide{{Fence: algorithms.Fence{Epoch: epoch,
			Generation: theirs}, Commit: true, Costs: charge("k", 10, 1).Costs,
			Buckets: charge("k", 10, 1).Buckets}})[0]
		if must(t, r).Status != algorithms.StatusUnknown {
			t.Errorf("a script of the other version: %v", r.Value.Status)
		}
		if stands := tokenOf(t, server); stands.Layout != algorithms.Layout {
			t.Errorf("the token names layout %d", stands.Layout)
		}
		if again := mustOpen(t, connect(t, Options{URL: server.URL}), Opening{Region: "eu",
			Epoch: epoch, LastGeneration: got.Generation}); !again.took(got.Generation) ||
			again.Foreign {
			t.Errorf("a mate opened %+v", again)
		}
	})
}

// TestAnotherLayoutComesLast: a node whose store was opened by a version of another layout
// meanwhile charges nothing any more and does not open it again, so that the two do not open it in
// turn. Once started again it has the store.
func TestAnotherLayoutComesLast(t *testing.T) {
	onLayouts(t, func(t *testing.T, server *servers.Server, layout int64) {
		s := node(t, server, first)
		serves(t, s, "k")
		mine := s.Generation()
		theirs := openedByAnother(t, server, layout)
		allAre(t, s, "k", algorithms.StatusUnknown)
		for range 2 {
			_, err := s.Open(t.Context(), Opening{Region: "eu", Epoch: epoch, LastGeneration: mine})
			for _, words := range []string{"another version", fmt.Sprint("layout ", layout),
				address(server), "started again"} {
				if err == nil || !strings.Contains(err.Error(), words) {
					t.Errorf("%v does not say %q", err, words)
				}
			}
		}
		if stands := tokenOf(t, server); stands.Generation != theirs || stands.Layout != layout {
			t.Fatalf("the store of the other version stands as %+v", stands)
		}
		anew := connect(t, Options{URL: server.URL})
		if got := mustOpen(t, anew, Opening{Region: "eu", Epoch: epoch,
			LastGeneration: mine}); !got.Lost {
			t.Errorf("started again it opened %+v", got)
		}
		closedCells(t, anew, epoch)
	})
}

// TestAnOlderCopyOfAnotherLayout: a node opens its store again, as lost, when a copy is put back of
// before a version of this layout opened it.
func TestAnOlderCopyOfAnotherLayout(t *testing.T) {
	onLayouts(t, func(t *testing.T, server *servers.Server, layout int64) {
		client := fixtures.Operator(t, server)
		openedByAnother(t, server, layout)
		copied, err := client.HGetAll(t.Context(), TokenKey(Whole)).Result()
		suite.Must(t, err)
		s := node(t, server, first)
		suite.Must(t, client.Del(t.Context(), TokenKey(Whole)).Err())
		suite.Must(t, client.HSet(t.Context(), TokenKey(Whole), copied).Err())
		if got := mustOpen(t, s, Opening{Region: "eu", Epoch: epoch,
			LastGeneration: s.Generation()}); !got.Lost || !got.Foreign ||
			got.FoundLayout != layout {
			t.Errorf("opened %+v", got)
		}
		closedCells(t, s, epoch)
	})
}

// TestATokenWithoutALayout: versions before the number wrote layout 1. What they wrote is taken as
// it stands, and the next generation writes the number.
func TestATokenWithoutALayout(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		s := node(t, server, first)
		serves(t, s, "k")
		generation := s.Generation()
		client := fixtures.Operator(t, server)
		if n, err := client.HDel(t.Context(), TokenKey(Whole), "layout").Result(); n != 1 {
			t.Fatalf("%d fields were deleted: %v", n, err)
		}
		if stands := tokenOf(t, server); stands.Layout != 1 {
			t.Errorf("a token without a number is of layout %d", stands.Layout)
		}
		mate := connect(t, Options{URL: server.URL})
		if got := mustOpen(t, mate, Opening{Region: "eu", Epoch: epoch,
			LastGeneration: generation}); !got.took(generation) {
			t.Fatalf("opened %+v, want generation %d as it stands", got, generation)
		}
		serves(t, mate, "k")
		mustOpen(t, mate, Opening{Region: "eu", Epoch: epoch, LastGeneration: generation,
			Ended: generation})
		if n, err := client.HGet(t.Context(), TokenKey(Whole), "layout").Int64(); n !=
			algorithms.Layout {
			t.Errorf("the next generation wrote layout %d: %v", n, err)
		}
		serves(t, mate, "k")
	})
}

// TestOpenAnotherLayoutTogether: of nodes that find a store of another layout at the same time one
// opens it, the others take it.
func TestOpenAnotherLayoutTogether(t *testing.T) {
	onLayouts(t, func(t *testing.T, server *servers.Server, layout int64) {
		theirs := openedByAnother(t, server, layout)
		nodes, opened, errs := make([]*Store, 8), make([]Opened, 8), make([]error, 8)
		var all sync.WaitGroup
		for i := range nodes {
			nodes[i] = connect(t, Options{URL: server.URL})
			all.Go(func() {
				opened[i], errs[i] = nodes[i].Open(t.Context(), Opening{Region: "eu", Epoch: epoch,
					LastGeneration: theirs})
			})
		}
		all.Wait()
		lost := 0
		for i, o := range opened {
			if errs[i] != nil || o.Generation != opened[0].Generation || o.Generation <= theirs {
				t.Fatalf("node %d: %+v, %v; the first %+v", i, o, errs[i], opened[0])
			}
			if o.Lost {
				lost++
			}
			closedCells(t, nodes[i], epoch)
		}
		if lost != 1 {
			t.Errorf("%d nodes opened the store anew", lost)
		}
	})
}
