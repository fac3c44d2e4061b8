package operators

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/front/asjson"
	"github.com/quotad/quotad/region/front/audit"
	"github.com/quotad/quotad/region/front/wire"
	"github.com/quotad/quotad/region/memory/tenure"
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
	d := documentsMessage(known.Documents)
	ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
	defer cancel()
	nodes := wire.Each(s.node.AskDocuments(ctx), func(n region.NodeDocuments) *quotadv1.NodeDocuments {
		return &quotadv1.NodeDocuments{Node: n.Node, Open: wire.Each(n.Open, policy.Epoch.String), FileRefused: asjson.Some(n.File)}
	})
	wire.Write(w, "application/json", http.StatusOK, &quotadv1.DocumentsResponse{Region: known.Region,
		Open: d.Open, FileRefused: d.FileRefused, Regions: d.Regions, Held: d.Held,
		Limits: wire.Each(known.Documents.Limits, heldMessage), Nodes: nodes})
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
		err = wire.Refuse(http.StatusUnsupportedMediaType,
			"send the document with Content-Type: application/yaml")
	}
	var d *policy.Document
	if err == nil {
		d, err = policy.Parse("document", source)
		if f, is := errors.AsType[*policy.Fault](err); is {
			s.panics.Recovered(r.Pattern, f)
			err = wire.Refuse(http.StatusInternalServerError, err.Error())
		} else if err != nil {
			err = wire.Refuse(http.StatusBadRequest, err.Error())
		}
	}
	if err != nil {
		wire.WriteProblem(w, wire.ProblemOf(err))
		return
	}
	ctx, cancel := context.WithTimeout(wire.WithAct(r), adoptTimeout)
	defer cancel()
	before := s.node.Document()
	if err = policy.CheckStep(before, d); err == nil || r.URL.Query().Get("yes") == "true" {
		err = s.node.Adopt(ctx, d)
	}
	s.options.Done(ctx, audit.OfDocument(before, d), err)
	if barrier.Refused(err) {
		err = wire.Refuse(http.StatusConflict, err.Error())
	}
	wire.Reply(w, Applied{before.Epoch().String(), d.Epoch().String()}, err)
}

// documentsMessage returns what other nodes are told of documents: all but the limits that older
// ones still bind.
func documentsMessage(d tenure.Documents) *quotadv1.DocumentsStatus {
	return &quotadv1.DocumentsStatus{Open: wire.Each(d.Open, openMessage), Held: int64(d.Held),
		FileRefused: asjson.Some(textOf(d.File)),
		Regions: wire.Each(d.Regions, func(r tenure.RegionDocuments) *quotadv1.RegionDocuments {
			return &quotadv1.RegionDocuments{Region: r.Region, Open: wire.Each(r.Open, openMessage),
				Refused: asjson.Some(textOf(r.Refused)), Waited: wire.IfPositive(r.Waited)}
		})}
}

func heldMessage(l tenure.HeldLimit) *quotadv1.HeldLimit {
	m := &quotadv1.HeldLimit{Domain: l.Limit.Domain, Limit: l.Limit.Name, Match: map[string]string{},
		Removed: asjson.Some(l.Removed), Charged: asjson.Some(l.Charged), Since: storeMoment(l.Since),
		Waiting: l.Waiting, Until: storeMoment(l.Opens)}
	for _, c := range l.Limit.Match {
		m.Match[c.Name] = c.Value
	}
	return m
}

func openMessage(t tenure.Told) *quotadv1.OpenDocument {
	return &quotadv1.OpenDocument{Document: t.Epoch.String(), Acknowledged: storeMoment(t.At)}
}

// textOf returns the text of an error, empty for nil.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// storeMoment returns nil for 0.
func storeMoment(at quantity.StoreTime) *timestamppb.Timestamp {
	if at == 0 {
		return nil
	}
	return timestamppb.New(time.UnixMicro(int64(at)))
}
