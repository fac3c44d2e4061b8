package serving

import (
	"bytes"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/region/base/link"
	"github.com/quotad/quotad/region/front/audit"
	"github.com/quotad/quotad/region/front/roles"
	"github.com/quotad/quotad/region/trade/peer"
)

// TestCutsOverThePeerPort: with a roles file only callers with the role operate cut a node off,
// known by the URI of their certificates. What they do, and what is refused to somebody known, is
// in the audit log.
func TestCutsOverThePeerPort(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	file := filepath.Join(t.TempDir(), "roles.yaml")
	if err := os.WriteFile(file, []byte(`callers:
  - {name: alice, roles: [operate], certificates: ["quotad://operators/alice"]}
  - {name: bob, roles: [read], certificates: ["quotad://operators/bob"]}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	book, err := roles.OpenBook(file, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		guard   *roles.Guard
		who     peer.Identity
		allowed bool
		audited string // act, who and outcome
	}{
		"may operate":              {roles.NewGuard("peer", book, quiet), peer.Identity{Region: "operators", Node: "alice"}, true, `"act":"cut","who":"alice",.*"outcome":"done"`},
		"may read":                 {roles.NewGuard("peer", book, quiet), peer.Identity{Region: "operators", Node: "bob"}, false, `"act":"cut","who":"operators/bob",.*"outcome":"refused"`},
		"a node":                   {roles.NewGuard("peer", book, quiet), peer.Identity{Region: "us", Node: "n1"}, false, `"act":"cut","who":"us/n1",.*"outcome":"refused"`},
		"plain text, and roles":    {roles.NewGuard("peer", book, quiet), peer.Identity{}, false, ""},
		"anybody, without roles":   {nil, peer.Identity{Region: "us", Node: "n1"}, true, `"act":"cut","who":"us/n1",.*"outcome":"done"`},
		"plain text without roles": {nil, peer.Identity{}, true, `"act":"cut","who":"anonymous",.*"outcome":"done"`},
	} {
		t.Run(name, func(t *testing.T) {
			gate := link.NewGate()
			defer gate.Heal()
			eu := netip.MustParseAddr("127.0.1.11")
			var log bytes.Buffer
			cuts := peerCuts{newCutter("us", gate, func() map[string][]netip.Addr { return map[string][]netip.Addr{"eu": {eu}} }, quiet),
				&protection{peerGuard: c.guard, audit: audit.New(&log, "us/n1", quiet)}}
			_, err := cuts.Cut(peer.Caller{Identity: c.who, Address: "127.0.0.1:5"}, "eu", "both", time.Minute)
			if (err == nil) != c.allowed || gate.IsCut(eu, link.Both) != c.allowed || !c.allowed && !errors.Is(err, peer.ErrForbidden) {
				t.Errorf("%v, cut: %v; want it allowed: %v", err, gate.IsCut(eu, link.Both), c.allowed)
			}
			lines := strings.Count(log.String(), "\n")
			want := 0
			for part := range strings.SplitSeq(c.audited, ".*") {
				want = min(1, len(c.audited))
				if !strings.Contains(log.String(), part) {
					t.Errorf("audited %s, want %s", &log, c.audited)
				}
			}
			if lines != want {
				t.Errorf("%d lines are audited: %s", lines, &log)
			}
		})
	}
}
