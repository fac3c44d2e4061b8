package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/quotad/quotad/client/httplimit"
)

func TestRemoteAddr(t *testing.T) {
	value := httplimit.RemoteAddr(netip.MustParsePrefix("10.0.0.0/8"),
		netip.MustParsePrefix("fd00::/8"))
	for _, one := range []struct {
		name, peer string
		forwarded  []string
		want       string
	}{
		{"no proxy", "1.2.3.4:5", nil, "1.2.3.4"},
		{"a header of the caller's", "1.2.3.4:5", []string{"9.9.9.9"}, "1.2.3.4"},
		{"a proxy", "10.0.0.1:5", []string{"1.2.3.4"}, "1.2.3.4"},
		{"what the caller put before", "10.0.0.1:5", []string{"9.9.9.9, 1.2.3.4"}, "1.2.3.4"},
		{"two proxies", "10.0.0.1:5", []string{"9.9.9.9, 1.2.3.4, 10.2.0.1"}, "1.2.3.4"},
		{"two lines", "10.0.0.1:5", []string{"9.9.9.9,1.2.3.4", "10.2.0.1"}, "1.2.3.4"},
		{"ports", "10.0.0.1:5", []string{"1.2.3.4:567"}, "1.2.3.4"},
		{"all are proxies", "10.0.0.1:5", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"no header", "10.0.0.1:5", nil, "10.0.0.1"},
		{"no address", "10.0.0.1:5", []string{"9.9.9.9, unknown, 10.0.0.2"}, "10.0.0.2"},
		{"an empty element", "10.0.0.1:5", []string{"9.9.9.9, "}, "10.0.0.1"},
		{"IPv4 as IPv6", "[::ffff:10.0.0.1]:5", []string{"::ffff:1.2.3.4"}, "1.2.3.4"},
		{"IPv6", "[fd00::1]:5", []string{"[2001:db8:1:2:3:4:5:6]:7"}, "2001:db8:1:2::/64"},
		{"IPv6 without a port", "[fd00::1]:5", []string{"2001:db8:1:2::9"}, "2001:db8:1:2::/64"},
		{"a zone", "[fe80::1%eth0]:5", nil, "fe80::/64"},
		{"no IP", "@", []string{"1.2.3.4"}, ""},
		{"endless", "10.0.0.1:5", []string{"9.9.9.9" + strings.Repeat(",10.0.0.2", 1000)}, "10.0.0.2"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = one.peer
		r.Header["X-Forwarded-For"] = slices.Clone(one.forwarded)
		if got := value(r); got != one.want {
			t.Errorf("%s: %q, want %q", one.name, got, one.want)
		}
		if !slices.Equal(r.Header["X-Forwarded-For"], one.forwarded) {
			t.Errorf("%s: the header became %q", one.name, r.Header["X-Forwarded-For"])
		}
	}
}

func TestBy(t *testing.T) {
	key := httplimit.By(httplimit.Values{"tenant": httplimit.PathValue("tenant"),
		"account": httplimit.Header("X-Account"), "route": httplimit.Fixed("list")})
	var got httplimit.Charge
	mux := http.NewServeMux()
	mux.HandleFunc("/t/{tenant}", func(_ http.ResponseWriter, r *http.Request) {
		var applies bool
		if got, applies = key(r); !applies {
			t.Error("By does not apply")
		}
	})
	long := strings.Repeat("a", 257)
	for sent, want := range map[string]string{"42": "42", "": "", long[1:]: long[1:],
		long: "sha256:", "\xff": "sha256:"} {
		r := httptest.NewRequest("GET", "/t/acme", nil)
		r.Header.Set("X-Account", sent)
		mux.ServeHTTP(httptest.NewRecorder(), r)
		d := got.Descriptors
		if len(d) != 3 || d["tenant"] != "acme" || d["route"] != "list" || got.Cost != 0 {
			t.Errorf("%+v", got)
		}
		if account, has := d["account"]; !has || !strings.HasPrefix(account, want) ||
			want == "sha256:" && len(account) != len(want)+64 {
			t.Errorf("account: %q, want %q", account, want)
		}
	}
}
