package bench

import (
	"encoding/json"
	"net/http"
)

// webFloor is the service of a Floor over HTTP. It reads and writes JSON as encoding/json does.
type webFloor struct {
	answer json.RawMessage
	lean   *lean // nil: nothing is decided
}

// webServer is an HTTP server that can be stopped as one of gRPC.
type webServer struct{ http.Server }

// Stop ends the server at once.
func (s *webServer) Stop() { _ = s.Close() } // it has nothing to lose

func newWebFloor(answer []byte, l *lean) *webServer {
	f := &webFloor{answer, l}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/check", f.check)
	mux.HandleFunc("POST /v1/check-batch", f.checkBatch)
	return &webServer{http.Server{Handler: mux, ReadHeaderTimeout: callTimeout}}
}

func (f *webFloor) check(w http.ResponseWriter, r *http.Request) {
	var q webRequest
	if f.decide(w, r, &q, func() []webRequest { return []webRequest{q} }) {
		writeWeb(w, f.answer)
	}
}

func (f *webFloor) checkBatch(w http.ResponseWriter, r *http.Request) {
	var q webBatch
	if !f.decide(w, r, &q, func() []webRequest { return q.Requests }) {
		return
	}
	all := webDecisions{make([]json.RawMessage, len(q.Requests))}
	for i := range all.Decisions {
		all.Decisions[i] = f.answer
	}
	writeWeb(w, all)
}

// decide reads a body into a request, and makes the lean calls for what it asks. If that fails it
// writes the answer and returns false.
func (f *webFloor) decide(w http.ResponseWriter, r *http.Request, into any,
	asks func() []webRequest) bool {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAnswer)).Decode(into)
	if err == nil && f.lean != nil {
		var keys []string
		for _, q := range asks() {
			keys = append(keys, q.Descriptors[descriptor])
		}
		err = f.lean.decide(r.Context(), keys)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
	return err == nil
}

func writeWeb(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // if the write fails, the caller has gone
}
