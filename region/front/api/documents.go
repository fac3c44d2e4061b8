package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/front/audit"
)

const (
	// adoptTimeout bounds the time to open a document in this region.
	adoptTimeout = 10 * time.Second
	// askTimeout bounds the wait for other nodes' answers.
	askTimeout = time.Second
)

// document answers with the text of the newest document that is open here.
func (s *Server) document(w http.ResponseWriter, _ *http.Request) {
	d := s.node.Document()
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("ETag", `"`+d.Epoch().String()+`"`)
	_, _ = w.Write(d.Source()) // if the write fails, the caller has gone
}

// documents answers which documents are open where. It asks all nodes of all regions.
func (s *Server) documents(w http.ResponseWriter, r *http.Request) {
	known := s.node.Status()
	answer := DocumentsAnswer{Region: known.Region, DocumentsStatus: newDocuments(known.Documents)}
	ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
	defer cancel()
	answer.Nodes = each(s.node.AskDocuments(ctx), func(n region.NodeDocuments) NodeDocuments {
		return NodeDocuments{n.Node, each(n.Open, policy.Epoch.String), n.File}
	})
	write(w, "application/json", http.StatusOK, answer)
}

// Applied is the outcome of a document that was applied.
type Applied struct {
	Before string `json:"before"` // epoch of the newest document that was open
	Epoch  string `json:"epoch"`  // of the one that was applied
}

// apply opens a limits document in this region, from which the others fetch it.
func (s *Server) apply(w http.ResponseWriter, r *http.Request) {
	source, err := io.ReadAll(http.MaxBytesReader(w, r.Body, policy.MaxDocumentBytes))
	if err == nil && !strings.HasPrefix(r.Header.Get("Content-Type"), "application/yaml") {
		err = &refusal{http.StatusUnsupportedMediaType,
			"send the document with Content-Type: application/yaml"}
	}
	var d *policy.Document
	if err == nil {
		d, err = policy.Parse("document", source)
		if f, is := errors.AsType[*policy.Fault](err); is {
			s.webPanics.Recovered(r.Pattern, f)
			err = &refusal{http.StatusInternalServerError, err.Error()}
		} else if err != nil {
			err = &refusal{http.StatusBadRequest, err.Error()}
		}
	}
	if err != nil {
		writeProblem(w, toProblem(err))
		return
	}
	ctx, cancel := context.WithTimeout(withAct(r), adoptTimeout)
	defer cancel()
	before := s.node.Document()
	if err = policy.CheckStep(before, d); err == nil || r.URL.Query().Get("yes") == "true" {
		err = s.node.Adopt(ctx, d)
	}
	s.done(ctx, audit.OfDocument(before, d), err)
	if barrier.Refused(err) {
		err = &refusal{http.StatusConflict, err.Error()}
	}
	reply(w, Applied{before.Epoch().String(), d.Epoch().String()}, err)
}

// DocumentsStatus is what a node knows of the limits documents of all regions.
type DocumentsStatus struct {
	Open []OpenDocument `json:"open"` // in this region, the oldest first
	// FileRefused is why the document of the node's file is not open; absent: it is, or was.
	FileRefused string            `json:"file_refused,omitempty"`
	Regions     []RegionDocuments `json:"regions"` // the others
	// Limits are those that an older document still binds, some of Held.
	Limits []HeldLimit `json:"limits"`
	Held   int         `json:"held"`
}

// DocumentsAnswer is what a node found out about documents by asking all others.
type DocumentsAnswer struct {
	Region string `json:"region"` // of the node that was asked
	DocumentsStatus
	Nodes []NodeDocuments `json:"nodes"` // that answered
}

// OpenDocument is a document that is open in a region.
type OpenDocument struct {
	Epoch string `json:"document"`
	// Acknowledged is when the region's store held it, by its clock; absent: not yet.
	Acknowledged time.Time `json:"acknowledged,omitzero"`
}

// RegionDocuments is what a node heard of another region.
type RegionDocuments struct {
	Region  string         `json:"region"`
	Open    []OpenDocument `json:"open"`              // none: nothing was heard
	Refused string         `json:"refused,omitempty"` // why a document of that region is not taken here
	// Waited is how long limits have waited for its acknowledgement; absent: none waits.
	Waited Milliseconds `json:"waited_ms,omitempty"`
}

// HeldLimit is a limit that an older document still binds: the region uses the least of what several
// documents give it. One that was removed stays known, should a document have it again.
type HeldLimit struct {
	Domain  string            `json:"domain"`
	Limit   string            `json:"limit"`
	Match   map[string]string `json:"match,omitempty"`
	Removed bool              `json:"removed,omitempty"` // the newest document has it no more
	Charged bool              `json:"charged,omitempty"` // though removed, beside what took its place
	Since   time.Time         `json:"since,omitzero"`
	Waiting []string          `json:"waiting"`        // regions that must acknowledge
	Until   time.Time         `json:"until,omitzero"` // absent: not known yet
}

// NodeDocuments is what one node says.
type NodeDocuments struct {
	Node        string   `json:"node"`
	Open        []string `json:"open"` // epochs; none: it does not serve
	FileRefused string   `json:"file_refused,omitempty"`
}
