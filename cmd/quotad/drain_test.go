package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

const (
	drainCallers = 8
	// drainAnswers is how many answers each caller has before the node is told to end.
	drainAnswers = 50
)

// scriptDrains: "drains URL BODY" starts callers that post the body to the node at once, again and
// again. Meanwhile it sends SIGTERM to all background commands, and goes on until the node accepts
// no more. Decisions are numbered without gaps, so no decision of the node may be missing among the
// answers.
func scriptDrains(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: drains URL BODY")
	}
	var warm, done sync.WaitGroup
	warm.Add(drainCallers)
	answers := make([]callerAnswers, drainCallers)
	for i := range answers {
		done.Go(func() { answers[i] = postUntilRefused(args[0], args[1], warm.Done) })
	}
	warm.Wait()
	for _, c := range ts.BackgroundCmds() {
		ts.Check(c.Process.Signal(syscall.SIGTERM))
	}
	done.Wait()
	var all []uint64
	for _, a := range answers {
		ts.Check(a.err)
		all = append(all, a.sequences...)
	}
	slices.Sort(all)
	for i, n := range all {
		if n != uint64(i+1) {
			ts.Fatalf("decision %d was made, and its answer never came: %d answers, the last of decision %d", i+1, len(all), all[len(all)-1])
		}
	}
	ts.Logf("%d answers of %d callers, none missing", len(all), drainCallers)
}

// callerAnswers is what one caller was answered.
type callerAnswers struct {
	sequences []uint64
	err       error // an answer that is none
}

// postUntilRefused posts until the node accepts no more. It calls warm after its first answers.
func postUntilRefused(url, body string, warm func()) (a callerAnswers) {
	var once sync.Once
	defer once.Do(warm)
	client := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	for {
		response, err := client.Post(url, "application/json", strings.NewReader(body))
		if err != nil {
			// No process listens, or the connection was closed before the request was read.
			return a
		}
		var d struct {
			Sequence uint64 `json:"sequence"`
		}
		err = json.NewDecoder(response.Body).Decode(&d)
		response.Body.Close()
		if err != nil || d.Sequence == 0 {
			a.err = fmt.Errorf("answer %d of a caller, %s, is no decision: %w", len(a.sequences)+1,
				response.Status, err)
			return a
		}
		if a.sequences = append(a.sequences, d.Sequence); len(a.sequences) == drainAnswers {
			once.Do(warm)
		}
	}
}
