package httplimit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"github.com/quotad/quotad/client"
	"github.com/quotad/quotad/client/httplimit"
)

// once stands for a client, which client.Dial makes. It admits one request.
type once struct{ used bool }

func (o *once) Check(context.Context, client.Request) (client.Decision, error) {
	d := client.Decision{Allowed: !o.used, Limit: "account", LimitUnits: 1, AtUs: 1, Share: 1,
		ResetAfter: time.Minute}
	if o.used {
		d.RetryAfter = time.Minute
	}
	o.used = true
	return d, nil
}

// Requests are limited by account and by address, which proxies in 10.0.0.0/8 are trusted to tell.
func Example() {
	limits := &once{} // limits, err := client.Dial(client.Options{}, "quotad:8081")

	limit := httplimit.New(limits, httplimit.Options{Domain: "api",
		Key: httplimit.By(httplimit.Values{"account": httplimit.Header("X-Account"),
			"ip": httplimit.RemoteAddr(netip.MustParsePrefix("10.0.0.0/8"))})})
	handler := limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "hello")
	}))

	for range 2 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Printf("%d %s %q\n", w.Code, w.Header().Get("RateLimit"), w.Header().Get("Retry-After"))
		fmt.Print(w.Body)
	}
	// Output:
	// 200 "account";r=0;t=60;quotad-share=1 ""
	// hello
	// 429 "account";r=0;t=60;quotad-share=1 "60"
	// {"type":"about:blank","title":"Too Many Requests","status":429,"detail":"the request is over a limit","limit":"account","retry_after_ms":60000}
}

// A function of one's own says that reading is free, and that a request costs what it sends.
func ExampleKey() {
	key := func(r *http.Request) (httplimit.Charge, bool) {
		account := httplimit.Header("X-Account")(r)
		return httplimit.Charge{Descriptors: map[string]string{"account": account},
			Cost: 1 + max(r.ContentLength, 0)/1024}, r.Method != http.MethodGet
	}
	for _, method := range []string{"GET", "POST"} {
		r := httptest.NewRequest(method, "/", nil)
		r.ContentLength = 5000
		charge, applies := key(r)
		fmt.Println(method, applies, charge.Cost)
	}
	// Output:
	// GET false 5
	// POST true 5
}

// A wildcard of the path is known to handlers of the mux.
func ExamplePathValue() {
	limit := httplimit.New(&once{}, httplimit.Options{Domain: "api",
		Key: httplimit.By(httplimit.Values{"tenant": httplimit.PathValue("tenant")})})
	mux := http.NewServeMux()
	mux.Handle("GET /tenants/{tenant}", limit(http.NotFoundHandler()))

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/tenants/acme", nil))
	fmt.Println(w.Code)
	// Output: 404
}
