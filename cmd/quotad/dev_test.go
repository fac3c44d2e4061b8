package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/cmd/quotad/operate/top"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/front/asjson"
)

const devLimits = `version: 1
regions: {us-east: {weight: 40}, eu-west: {weight: 40}, ap-south: {weight: 20}}
limits:
  - {name: account-month, domain: api, key: [account], match: {plan: free}, algorithm: fixed_window,
     limit: 10, window: 30d, lending_limit: 1, on_exhausted: borrow}
`

// startDev runs quotad dev on free ports until the test ends, and returns the addresses of the
// first region's API and of all admin listeners.
func startDev(t *testing.T, args ...string) (web string, admins []string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan int)
	var errs bytes.Buffer
	go func() {
		code := run(ctx, append([]string{"dev", "--port", "0"}, args...), w, &errs)
		w.Close()
		ended <- code
	}()
	t.Cleanup(func() {
		stop()
		go func() { _, _ = io.Copy(io.Discard, r) }()
		if code := <-ended; code != 0 {
			t.Errorf("dev ended with %d: %s", code, errs.String())
		}
	})
	var said strings.Builder
	buffer := make([]byte, 4096)
	for !strings.Contains(said.String(), "Ctrl+C") {
		n, err := r.Read(buffer)
		if err != nil {
			t.Fatalf("%v after\n%s%s", err, said.String(), errs.String())
		}
		said.Write(buffer[:n])
	}
	for _, line := range regexp.MustCompile(`HTTP (\S+) +gRPC \S+ +admin (\S+)`).
		FindAllStringSubmatch(said.String(), -1) {
		if web == "" {
			web = "http://" + line[1]
		}
		admins = append(admins, "http://"+line[2])
	}
	for line := range strings.Lines(said.String()) {
		if strings.HasPrefix(line, "|") && len(strings.TrimSuffix(line, "\n")) != 80 {
			t.Errorf("a line of the box is not 80 wide: %s", line)
		}
	}
	return web, admins
}

// ends runs a command and returns what it printed. It fails the test unless the command ends with
// the code.
func ends(t *testing.T, code int, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if got := run(t.Context(), args, &out, &errs); got != code {
		t.Errorf("quotad %s ended with %d, want %d: %s%s", strings.Join(args, " "), got, code,
			out.String(), errs.String())
	}
	return out.String() + errs.String()
}

// wants fails the test unless a text has all parts.
func wants(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}

// TestDev: three regions stay, admit a limit once, and tell at any of them how all of them stand.
func TestDev(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "limits.yaml")
	suite.Must(t, os.WriteFile(file, []byte(devLimits), 0o600))
	web, admins := startDev(t, "--policy", file, "--round-trip", "20ms")
	if len(admins) != 3 {
		t.Fatalf("%d regions", len(admins))
	}
	post := func() int {
		r, err := http.Post(web+"/v1/check", "application/json",
			strings.NewReader(`{"domain":"api","descriptors":{"account":"42","plan":"free"}}`))
		suite.Must(t, err)
		r.Body.Close()
		return r.StatusCode
	}
	admitted, denied := 0, 0
	// A region asks the others as it runs short, and may deny while it waits for them.
	for admitted < 10 && denied < 1000 {
		if post() == http.StatusOK {
			admitted++
		} else {
			denied++
		}
	}
	for range 5 {
		if code := post(); code != http.StatusTooManyRequests {
			t.Errorf("one more than the limit is answered %d", code)
		}
		denied++
	}
	for _, addr := range admins { // whichever node is asked
		wants(t, ends(t, 0, "explain", "account-month", "account=42", "--addr", addr,
			"--timeout", suite.Patience.String()),
			"in ap-south, was denied", "All 10 units of the limit are used worldwide.",
			"A request of one unit would be denied in ap-south now, and told to come again in",
			"account-month (api) account=42 plan=free: 10 of 10 units used, window 30d, fixed_window",
			"us-east", "eu-west", "a denial is remembered by n1")
	}
	var e quotadv1.ExplainResponse
	if err := asjson.Unmarshal([]byte(ends(t, 0, "explain", "account-month", "account=42", "-o", "json",
		"--addr", admins[1])), &e); err != nil || len(e.Regions) != 3 || e.Used != 10 {
		t.Errorf("%v, %v", &e, err)
	}
	wants(t, ends(t, 1, "explain", "none", "account=42", "--addr", admins[0]), "no limit of this name")
	wants(t, ends(t, 2, "explain", "account-month", "--addr", admins[0]), "descriptors.account: is missing")
	wants(t, ends(t, 2, "explain", "account=42", "--addr", admins[0]), "name a limit first")

	wants(t, ends(t, 0, "status", "--all", "--addr", admins[2]), "ap-south/n1", "eu-west/n1", "us-east/n1", "whole",
		"1 of 1", "ROUND TRIP")
	wants(t, ends(t, 0, "top", "account=4", "--addr", admins[0]), "account=42 plan=free",
		"denied")
	if got := ends(t, 0, "top", "account=5", "--addr", admins[0]); strings.Contains(got, "account=42") {
		t.Errorf("%s", got)
	}
	var r top.Report
	if err := json.Unmarshal([]byte(ends(t, 0, "top", "--once", "-o", "json", "--addr", admins[1])), &r); err != nil ||
		len(r.Limits) != 1 || len(r.Buckets) != 1 || r.Buckets[0].AdmittedUnits != 10 || r.Buckets[0].DeniedUnits != int64(denied) ||
		r.Buckets[0].Used != 10 || len(r.Buckets[0].Parts) != 3 || r.Nodes != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	wants(t, ends(t, 0, "top", "--addr", admins[1]), "account-month", "10 per 30d", "account=42 plan=free")
	wants(t, ends(t, 2, "top", "--every", "1ms"), "--every 1ms: choose 1s to 1m")

	// A cut shows in the matrix and in the sentence, and what is used stays known.
	wants(t, ends(t, 0, "cut", "eu-west", "--for", "1m", "--addr", admins[0]), "cut off from eu-west")
	suite.Eventually(t, "the cut shows", func() bool {
		var out, errs bytes.Buffer
		return run(t.Context(), []string{"status", "--all", "--addr", admins[0]}, &out, &errs) == 1 &&
			strings.Contains(out.String(), "DEGRADED") && strings.Contains(out.String(), "SILENT")
	})
	wants(t, ends(t, 0, "explain", "account-month", "account=42", "--addr", admins[0]), "DID NOT ANSWER",
		"degraded: no answer of eu-west since")
	wants(t, ends(t, 2, "cut", "nowhere", "--for", "1s", "--addr", admins[0]), "not another region")
}

// TestDevRehearses: load that a region is to get comes, and a Redis that is killed comes back
// without its data, which the region notices and survives.
func TestDevRehearses(t *testing.T) {
	t.Parallel()
	_, admins := startDev(t, "--round-trip", "20ms")
	rehearse := func(body string, code int) {
		t.Helper()
		r, err := http.Post(admins[0]+"/v1/rehearse", "application/json", strings.NewReader(body))
		suite.Must(t, err)
		defer r.Body.Close()
		if text, _ := io.ReadAll(r.Body); r.StatusCode != code {
			t.Errorf("%s: %d %s", body, r.StatusCode, text)
		}
	}
	overview := func() *quotadv1.OverviewResponse {
		t.Helper()
		r, err := http.Get(admins[0] + "/v1/overview")
		suite.Must(t, err)
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		suite.Must(t, err)
		o := &quotadv1.OverviewResponse{}
		suite.Must(t, asjson.Unmarshal(text, o))
		return o
	}
	rehearse(`{"region":"eu-west","load":50}`, 200)
	rehearse(`{"region":"nowhere","load":50}`, 400)
	suite.Eventually(t, "the load comes", func() bool {
		o := overview()
		return o.Loads["eu-west"] == 50 && len(o.Hottest) == 1 && o.Hottest[0].AdmittedUnits > 50
	})
	rehearse(`{"region":"eu-west","kill_store":"1s"}`, 200)
	rehearse(`{"region":"nowhere","kill_store":"1s"}`, 400)
	rehearse(`{"region":"eu-west","kill_store":"1s"}`, 400) // it is gone already
	suite.Eventually(t, "the region survives the loss", func() bool {
		for _, n := range overview().Nodes {
			if n.Region == "eu-west" && n.Store.Losses > 0 && n.Ready && n.Store.OutOfReach == 0 {
				return true
			}
		}
		return false
	})
	rehearse(`{"region":"eu-west","load":0}`, 200)
}

// TestDevSample: the sample of one region answers, and sends browsers to the console.
func TestDevSample(t *testing.T) {
	web, admins := startDev(t, "--regions", "1")
	q, err := http.NewRequestWithContext(t.Context(), "GET", web+"/", nil)
	suite.Must(t, err)
	q.Header.Set("Accept", "text/html")
	r, err := http.DefaultTransport.RoundTrip(q)
	suite.Must(t, err)
	r.Body.Close()
	if got := r.Header.Get("Location"); r.StatusCode != 307 || got != admins[0]+"/" {
		t.Errorf("%d %s", r.StatusCode, got)
	}
	wants(t, ends(t, 0, "status", "--all", "--addr", admins[0]), "us-east/n1")
	wants(t, ends(t, 0, "explain", "account-minute", "account=42", "--addr", admins[0]),
		"No node remembers a request on this bucket. Worldwide 0 of 10 units are used.")
}

// TestDevRefuses: what cannot run is refused before anything runs.
func TestDevRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--regions", "2"}, "choose 1 or 3"},
		{[]string{"--regions", "3", "--policy", "x"}, "the regions are those of the file"},
		{[]string{"--round-trip", "3s"}, "choose 0 to 2s"},
		{[]string{"--port", "65000"}, "for any free ports"},
		{[]string{"--policy", "/nowhere/limits.yaml"}, "/nowhere/limits.yaml"},
	} {
		wants(t, ends(t, 2, append([]string{"dev"}, c.args...)...), c.want)
	}
}
