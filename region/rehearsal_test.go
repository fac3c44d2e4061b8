package region

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/trade/peer"
)

// networkCutter cuts links of a cluster's network, as a gate cuts a node's sockets.
type networkCutter struct {
	*cluster
	from, to string // nodes
}

func (n networkCutter) Cut(_ peer.Caller, region, _ string, d time.Duration) ([]netip.Addr, error) {
	if !strings.HasPrefix(n.to, region+"/") {
		return nil, &admit.FieldError{Field: "region", Problem: "has no node"}
	}
	n.network.CutBoth(n.from, n.to, d)
	return []netip.Addr{n.network.Host(n.to).IP()}, nil
}

func (networkCutter) PacketsLost() uint64 { return 0 }

// TestCutOverThePeerPort: a node that was started without cuts refuses a cut, warns and counts it.
// A node that allows cuts is cut off and degraded for as long as the cut lasts, and then recovers
// by itself.
func TestCutOverThePeerPort(t *testing.T) {
	inBubble(t, []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
		var log bytes.Buffer
		said := func() string {
			synctest.Wait() // nobody writes meanwhile
			return log.String()
		}
		d := documents.Parse(t, 1, halves, "name: m, limit: 100, window: 1m")
		cfg := c.config("us/n1", d)
		cfg.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		n, err := Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		us := &running{Node: n, name: "us/n1"}
		c.running["us/n1"] = us
		c.start("eu/n1", d)
		c.meet()
		operator := peer.NewClient(c.network.Host("operator").DialContext, nil)
		defer operator.Close()
		cut := func(region string) error {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err := operator.Cut(ctx, "us", cfg.PeerAdvertise,
				peer.Cut{Region: region, Direction: "both", For: 30 * time.Second})
			return err
		}

		if err := cut("eu"); status.Code(err) != codes.PermissionDenied ||
			!strings.Contains(err.Error(), "start it with chaos: true") {
			t.Errorf("a node that makes no cuts: %v", err)
		}
		if text := said(); !strings.Contains(text,
			"refused a cut that was asked for over the peer port") ||
			!strings.Contains(text, "region=eu") {
			t.Errorf("the refusal is not loud: %q", text)
		}
		if refused := us.series(t)["quotad_peer_refused_total{reason=cut}"]; refused != 1 {
			t.Errorf("%v refused cuts are counted", refused)
		}

		first := time.Now()
		for range 2000 {
			_ = cut("eu")
		}
		if lines := strings.Count(said(), "refused a cut"); lines > int(time.Since(first)/
			time.Minute)+1 {
			t.Errorf("2,001 refused cuts in %s are %d lines of log", time.Since(first), lines)
		}
		if refused := us.series(t)["quotad_peer_refused_total{reason=cut}"]; refused != 2001 {
			t.Errorf("%v refused cuts are counted, want 2001", refused)
		}

		us.AllowCuts(networkCutter{c, "us/n1", "eu/n1"})
		if err := cut("ue"); status.Code(err) != codes.InvalidArgument ||
			!strings.Contains(err.Error(), "region: has no node") {
			t.Errorf("a cut of no region: %v", err)
		}
		if err := cut("eu"); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if !strings.Contains(said(), "a cut is asked for over the peer port") {
			t.Errorf("the cut is not loud: %q", said())
		}
		c.within(5*time.Second, "us to be degraded",
			func() bool { return us.Status().Peers[0].Degraded })
		c.within(time.Minute, "us to be in touch again",
			func() bool { return !us.Status().Peers[0].Degraded })
		if took := time.Since(begin); took < 30*time.Second || took > 36*time.Second {
			t.Errorf("the cut of 30s lasted %v", took)
		}
	})
}
