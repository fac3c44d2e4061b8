package peer

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// renewed is one node's files and what was reported of them.
type renewed struct {
	*TLS
	authority *authority
	who       Identity
	folder    string

	mu      sync.Mutex
	reports []string
}

// renew writes another certificate, for an hour from now on, into the node's files.
func (r *renewed) renew(trusted ...*authority) {
	r.authority.write(r.folder, of(r.who), append(trusted, r.authority)...)
}

// reported returns what was reported since it was last asked.
func (r *renewed) reported() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.reports
	r.reports = nil
	return all
}

// load has a node with files that can be renewed.
func load(a *authority, who Identity) *renewed {
	a.Helper()
	r := &renewed{authority: a, who: who, folder: a.TempDir()}
	r.renew()
	var err error
	r.TLS, err = LoadTLS(filesOf(r.folder), who, func(err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.reports = append(r.reports, fmt.Sprint(err))
	})
	if err != nil {
		a.Fatal(err)
	}
	return r
}

// trusting is a place in which eu/n1 calls us/n1 with certificates of an hour, in virtual time.
func trusting(t *testing.T, f func(t *testing.T, p *place, us, eu *renewed)) {
	t.Helper()
	inPlace(t, func(t *testing.T, p *place) {
		a := newAuthority(t)
		us, eu := load(a, us1), load(a, eu1)
		p.client.tls = eu.TLS
		p.serveAs("us", named("us"), us.TLS)
		p.client.SetNodes("us", []string{at("us")})
		p.mustCall("us")
		f(t, p, us, eu)
	})
}

// calls calls every 20 s for a time, and wants an answer each time.
func (p *place) calls(d time.Duration) {
	p.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(20 * time.Second) {
		p.mustCall("us")
	}
}

// TestCertificatesAreRotated: over hours with certificates of one hour, each replaced in time, no
// call fails and nothing is restarted.
func TestCertificatesAreRotated(t *testing.T) {
	trusting(t, func(t *testing.T, p *place, us, eu *renewed) {
		for range 5 {
			p.calls(50 * time.Minute)
			us.renew()
			eu.renew()
		}
		p.calls(50 * time.Minute)
		if _, err := p.call(time.Second); err != nil {
			t.Error(err)
		}
		for _, r := range []*renewed{us, eu} {
			if got := r.reported(); !slices.Equal(got, slices.Repeat([]string{"<nil>"}, 5)) {
				t.Errorf("%s: reported %q, want five changes", r.who, got)
			}
			if left := time.Until(r.Expires()); left < 9*time.Minute || left > 11*time.Minute {
				t.Errorf("%s: the certificate in force ends in %v", r.who, left)
			}
		}
	})
}

// TestCertificatesExpire: a connection ends when its certificate expires. No other connection is
// made until there is a new certificate; then one is made at once.
func TestCertificatesExpire(t *testing.T) {
	for _, which := range []string{"server", "client"} {
		t.Run(which, func(t *testing.T) {
			trusting(t, func(t *testing.T, p *place, us, eu *renewed) {
				expiring, other := us, eu
				if which == "client" {
					expiring, other = eu, us
				}
				time.Sleep(30 * time.Minute)
				other.renew()
				end := expiring.Expires()
				for time.Until(end) > 500*time.Millisecond {
					p.mustCall("us")
					time.Sleep(250 * time.Millisecond)
				}
				time.Sleep(time.Until(end) + time.Millisecond)
				for range 100 {
					if _, err := p.call(250 * time.Millisecond); err == nil {
						t.Fatal("a call was answered with a certificate that has expired")
					}
					time.Sleep(time.Second)
				}
				expiring.renew()
				if took := p.recovers(); took > soon+lookEvery {
					t.Errorf("called again %v after the renewal", took)
				}
			})
		})
	}
}

// TestBrokenFilesAreNotTaken: files that do not belong together leave the last good ones in force.
// They are reported once, and so is their repair.
func TestBrokenFilesAreNotTaken(t *testing.T) {
	trusting(t, func(t *testing.T, p *place, us, eu *renewed) {
		expires := us.Expires()
		expired := of(us1)
		past(expired)
		for _, broken := range []struct {
			spoil func()
			want  string
		}{
			{func() { put(t, us.files.Key, []byte("half a k")) },
				"give a certificate and its own key"},
			{func() { us.authority.write(us.folder, of(ap1), us.authority) },
				"is that of ap/n1, and this node is us/n1"},
			{func() { us.authority.write(us.folder, expired, us.authority) }, "has expired"},
		} {
			broken.spoil()
			p.calls(20 * time.Minute) // there are several connections in that time
			if got := us.reported(); len(got) != 1 || !strings.Contains(got[0], broken.want) {
				t.Errorf("reported %q, want once %q", got, broken.want)
			}
			if !us.Expires().Equal(expires) {
				t.Error("another certificate is in force")
			}
			us.renew()
			eu.renew()
			p.calls(20 * time.Minute)
			if got := us.reported(); !slices.Equal(got, []string{"<nil>"}) {
				t.Errorf("reported %q of files that were mended", got)
			}
			expires = us.Expires()
		}
		if got, want := us.Changes(), (Changes{Taken: 3, Refused: 3}); got != want {
			t.Errorf("counted %+v, want %+v", got, want)
		}
	})
}

// TestFilesAreLookedAtOnceASecond: the files are read at most once a second, however many
// connections are made.
func TestFilesAreLookedAtOnceASecond(t *testing.T) {
	trusting(t, func(t *testing.T, _ *place, us, _ *renewed) {
		time.Sleep(lookEvery)
		before := us.Expires() // looks
		time.Sleep(lookEvery / 2)
		us.renew()
		if got := us.Expires(); !got.Equal(before) {
			t.Error("the files were read twice within a second")
		}
		time.Sleep(lookEvery / 2)
		if got := us.Expires(); got.Equal(before) {
			t.Error("the files were not read after a second")
		}
	})
}

// TestAuthorityIsRotated: the nodes go from an old authority, over trusting both, to a new one, and
// no call fails. A node that stays with the old one is shut out, even on the connection that it
// has.
func TestAuthorityIsRotated(t *testing.T) {
	trusting(t, func(t *testing.T, p *place, us, eu *renewed) {
		late := load(us.authority, Identity{"eu", "n2"})
		straggler := p.another("eu-2", late.TLS)
		ping := func() error {
			_, err := straggler.Exchange(t.Context(), "us",
				exchange.Message{From: "eu", Node: "n2"})
			return err
		}
		old, next := us.authority, newAuthority(t)
		for _, trusted := range []func(r *renewed){
			func(r *renewed) { r.renew(next) },
			func(r *renewed) { r.authority = next; r.renew(old) },
		} {
			for _, r := range []*renewed{us, eu} {
				trusted(r)
				p.calls(15 * time.Minute)
			}
			late.renew(next)
			suite.Must(t, ping())
		}
		us.renew()
		eu.renew()
		for shut := time.Now().Add(maxTrust*11/10 +
			trustGrace); time.Now().Before(shut); time.Sleep(20 * time.Second) {
			p.mustCall("us")
			_ = ping() // keeps the connection busy
		}
		if err := ping(); status.Code(err) != codes.Unavailable {
			t.Errorf("a node of the old authority is answered still: %v", err)
		}
		p.calls(time.Minute)
	})
}

// another is a client of its own, on a host of its own.
func (p *place) another(host string, as *TLS) *Client {
	c := NewClient(p.net.Host(host).DialContext, as)
	p.Cleanup(func() { _ = c.Close() })
	c.SetNodes("us", []string{at("us")})
	return c
}

// TestOneAddressOfTwoRegions: whatever gossip says about an address, a region is called only where
// its certificate is shown, and never on a connection made for another region.
func TestOneAddressOfTwoRegions(t *testing.T) {
	trusting(t, func(t *testing.T, p *place, _, _ *renewed) {
		p.client.SetNodes("ap", []string{at("us")})
		_, err := p.client.Exchange(t.Context(), "ap", exchange.Message{From: "eu", Node: "n1"})
		if err == nil || !strings.Contains(err.Error(),
			"the certificate is that of us/n1, not of a node of region ap") {
			t.Errorf("region ap is called at an address of us: %v", err)
		}
		p.mustCall("us")
		p.client.SetNodes("ap", nil)
		p.mustCall("us")
	})
}

// TestTLSThroughCuts: with certificates, too, calls work again soon after a cut.
func TestTLSThroughCuts(t *testing.T) {
	trusting(t, func(t *testing.T, p *place, _, _ *renewed) {
		for _, cut := range []time.Duration{5 * time.Second, time.Minute, 20 * time.Minute} {
			p.net.CutBoth("eu", "us", cut)
			p.fails(cut)
			time.Sleep(500 * time.Millisecond)
			if took := p.recovers(); took > soon+2*time.Second {
				t.Errorf("after a cut of %v called again after %v", cut, took)
			}
		}
	})
}
