package main

import (
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptAsks: "asks CODE METHOD URL [HEADER]..." sends a request that must be answered with this
// code. The headers and the body of the answer are the stdout.
func scriptAsks(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: asks CODE METHOD URL [HEADER]...")
	}
	code, err := strconv.Atoi(args[0])
	ts.Check(err)
	q, err := http.NewRequest(args[1], args[2], nil)
	ts.Check(err)
	for _, h := range args[3:] {
		name, value, _ := strings.Cut(h, ": ")
		q.Header.Add(name, value)
	}
	response, err := http.DefaultClient.Do(q)
	ts.Check(err)
	defer response.Body.Close()
	out := ts.Stdout()
	ts.Check(response.Header.Write(newLines{out}))
	_, err = io.Copy(out, response.Body)
	ts.Check(err)
	if response.StatusCode != code {
		ts.Fatalf("%s, want %d", response.Status, code)
	}
}

// newLines writes lines without carriage returns.
type newLines struct{ io.Writer }

// Write implements io.Writer.
func (w newLines) Write(b []byte) (int, error) {
	_, err := io.WriteString(w.Writer, strings.ReplaceAll(string(b), "\r\n", "\n"))
	return len(b), err
}

// WriteString implements io.StringWriter.
func (w newLines) WriteString(s string) (int, error) { return w.Write([]byte(s)) }
