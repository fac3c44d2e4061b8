package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestCheck: all that is wrong with the options is told at once, and each by its flag.
func TestCheck(t *testing.T) {
	if err := New().Check(); err != nil {
		t.Errorf("the usual options: %v", err)
	}
	for flags, want := range map[string][]string{
		"--callers 0 --keys few --among 1000001 --duration 2m --rounds 51 --batch 1001 --algorithm guess --pid 1": {
			`--algorithm "guess": choose fixed_window`, "--callers 0: give 1 to 4096",
			`--keys "few": choose uniform, one, zipf`, "--among 1000001: give 1 to 1000000",
			"--duration 2m: give 50ms to 1m", "--rounds 51: give 1 to 50", "--batch 1001: give 1 to 1000",
			"--pid names processes of a node that runs already: add --grpc"},
		"--grpc 192.0.2.1:8081 --algorithm fixed_window --http --limits 2 --consistency exact": {
			`--grpc "192.0.2.1:8081": give the address of a node on this machine's loopback`,
			"--http: a node that runs already is called over gRPC",
			"--algorithm: the limits document of the node at --grpc chooses it",
			"--limits: the limits document of the node at --grpc chooses it",
			"--consistency: the limits document of the node at --grpc chooses it"},
		"--consistency prefetch --algorithm token_bucket --limits 12 --compare-pid 1": {
			"--consistency prefetch: a token_bucket counts the moment of each admission, so units charged beforehand " +
				"would count for too short: choose --algorithm fixed_window, sliding_window_counter",
			"--limits 12: a node refuses a request that meets more than 11 limits of token_bucket: give 1 to 11",
			"--compare-pid tells of a server to compare: add --compare, or leave it out"},
		"--consistency some --limits 65 --compare 192.0.2.1:8081 --http --compare-domain= --compare-descriptor key=1": {
			`--consistency "some": choose exact, prefetch`, "--limits 65: give 1 to 64",
			`--compare "192.0.2.1:8081": give the address of a server on this machine's loopback`,
			"--compare: an Envoy rate limit service is called over gRPC: leave out --http, or --compare",
			`--compare-domain "": give a name of 1 to 256 bytes`,
			`--compare-descriptor "key=1": has no {key}, so all keys would be one; give entries such as key={key}`},
	} {
		b, f := New(), pflag.NewFlagSet("bench", pflag.ContinueOnError)
		b.AllFlags(f)
		suite.Must(t, f.Parse(strings.Fields(flags)))
		got := fmt.Sprint(b.Check())
		for _, text := range want {
			if !strings.Contains("\n"+got, "\n"+text) {
				t.Errorf("%s: %s\nlacks: %s", flags, got, text)
			}
		}
		if n := strings.Count(got, "\n") + 1; n != len(want) {
			t.Errorf("%s: %d problems, want %d: %s", flags, n, len(want), got)
		}
	}
}

func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		counted(1, "key"):                "1 key",
		counted(2, "key"):                "2 keys",
		span(time.Minute):                "1m",
		span(90 * time.Second):           "1m30s",
		span(100 * time.Millisecond):     "100ms",
		plain("a\x1b[31m\nb"):            "a?[31m?b",
		plain(strings.Repeat("a", 3000)): strings.Repeat("a", maxPlain) + "...",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
