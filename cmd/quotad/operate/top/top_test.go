package top

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/quotad/quotad/cmd/quotad/draw"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

var begun = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// node is a node that decided so many units of a limit until some seconds after its start.
func node(region, name string, after int, admitted, denied int64) *quotadv1.NodeOverview {
	return &quotadv1.NodeOverview{Region: region, Node: name, Started: timestamppb.New(begun),
		At: later(after), Limits: []*quotadv1.LimitView{{Limit: "a", Domain: "api", LimitUnits: 100,
			Window: durationpb.New(time.Minute), AdmittedUnits: admitted, DeniedUnits: denied}}}
}

func later(seconds int) *timestamppb.Timestamp {
	return timestamppb.New(begun.Add(time.Duration(seconds) * time.Second))
}

func overview(after int, nodes ...*quotadv1.NodeOverview) *quotadv1.OverviewResponse {
	return &quotadv1.OverviewResponse{At: later(after), Nodes: nodes}
}

func TestRates(t *testing.T) {
	restarted := node("us", "n2", 14, 30, 0)
	restarted.Started = later(12)
	r := Of(overview(10, node("eu", "n1", 10, 100, 10), node("us", "n1", 10, 50, 0),
		node("us", "n2", 10, 1000, 0)),
		overview(14, node("eu", "n1", 12, 140, 20), // 2 s between its answers
			node("us", "n1", 14, 90, 0), restarted, node("ap", "n1", 14, 28, 0)))
	if len(r.Limits) != 1 || r.Nodes != 4 || fmt.Sprint(r.Regions) != "[eu us ap]" {
		t.Fatalf("%+v", r)
	}
	l := r.Limits[0]
	// 20 + 10 + 30 units in 2 s + 28 in the 14 s since its start
	if l.Admitted != 47 || l.Denied != 5 || fmt.Sprint(l.Regions) != "map[ap:2 eu:20 us:25]" ||
		l.Window != 60 || l.Units != 100 {
		t.Errorf("%+v", l)
	}
	if r := Of(overview(10, node("eu", "n1", 10, 1, 1)), overview(10, node("eu", "n1", 10, 1, 1))); len(r.Limits) != 0 {
		t.Errorf("no time passed: %+v", r)
	}
}

// TestScreen: the screen waits for two answers, and keeps what it showed when the node does not
// answer.
func TestScreen(t *testing.T) {
	answers := []*quotadv1.OverviewResponse{overview(1, node("eu", "n1", 1, 10, 0)), overview(2, node("eu", "n1", 2, 30, 0))}
	answers[1].Hottest = []*quotadv1.BucketSummary{{Limit: "a", Domain: "api",
		Descriptors: map[string]string{"account": "\x1b[31m42"}, LimitUnits: 100, AdmittedUnits: 30, Used: 30,
		Parts: []*quotadv1.BucketPart{{Region: "eu", Share: 60, Used: 30}}}}
	var s screen
	step := func(o *quotadv1.OverviewResponse, err error) string {
		s.take(o, err)
		return strings.Join(s.lines(), "\n")
	}
	if text := step(answers[0], nil); !strings.Contains(text, "waiting for the second answer") {
		t.Errorf("%s", text)
	}
	if text := step(answers[1], nil); !strings.Contains(text, "a      100 per 1m  20.0") || !strings.Contains(text, "30/60") ||
		strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
	for _, err := range []error{errors.New("no answer from the node"), nil} { // nil: as old as the last
		if text := step(answers[1], err); !strings.Contains(text, "20.0") ||
			strings.Contains(text, "no answer from the node") != (err != nil) {
			t.Errorf("%s", text)
		}
	}
}

// TestWatch: each interval has a drawing, and none is left when it ends.
func TestWatch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	asked := 0
	err := Watch(ctx, &draw.Screen{Out: &out}, time.Millisecond, func() (*quotadv1.OverviewResponse, error) {
		if asked++; asked == 4 {
			cancel()
		}
		return overview(asked, node("eu", "n1", asked, int64(10*asked), 0)), nil
	})
	if n := strings.Count(out.String(), "\x1b[H"); err != nil || n != 3 || !strings.HasSuffix(out.String(), "\x1b[?1049l") {
		t.Errorf("%d drawings, %v: %q", n, err, out.String())
	}
}
