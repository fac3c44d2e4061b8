package main

import (
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quotad/quotad/chaos/lab/collector"
)

// collectorKey is the key of a script's collector.
type collectorKey struct{}

// scriptCollect: "collect NAME" starts a collector of traces and sets $NAME to its endpoint.
func scriptCollect(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: collect NAME")
	}
	c, err := collector.Start()
	ts.Check(err)
	ts.Defer(c.Close)
	*ts.Value(collectorKey{}).(**collector.Collector) = c
	ts.Setenv(args[0], c.Endpoint)
}

// scriptSpans: "spans NAME..." compares the names of the spans that the collector has with these,
// in any order.
func scriptSpans(ts *testscript.TestScript, neg bool, want []string) {
	c := *ts.Value(collectorKey{}).(**collector.Collector)
	if neg || c == nil {
		ts.Fatalf("usage: collect NAME, and then: spans NAME...")
	}
	got := []string{}
	for _, s := range c.Spans() {
		got = append(got, s.GetName())
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		ts.Fatalf("the collector has the spans %s, not %s", strings.Join(got, " "),
			strings.Join(want, " "))
	}
}
