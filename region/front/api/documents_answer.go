package api

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/tenure"
)

// newDocuments converts what a node knows of documents for JSON.
func newDocuments(d tenure.Documents) DocumentsStatus {
	a := DocumentsStatus{Open: each(d.Open, newOpenDocument), Held: d.Held,
		Limits: []HeldLimit{}, FileRefused: textOf(d.File)}
	a.Regions = each(d.Regions, func(r tenure.RegionDocuments) RegionDocuments {
		return RegionDocuments{Region: r.Region, Open: each(r.Open, newOpenDocument),
			Refused: textOf(r.Refused), Waited: Milliseconds(r.Waited)}
	})
	for _, l := range d.Limits {
		held := HeldLimit{Domain: l.Limit.Domain, Limit: l.Limit.Name, Removed: l.Removed, Charged: l.Charged,
			Since: storeMoment(l.Since), Waiting: listed(l.Waiting), Until: storeMoment(l.Opens)}
		for _, c := range l.Limit.Match {
			if held.Match == nil {
				held.Match = map[string]string{}
			}
			held.Match[c.Name] = c.Value
		}
		a.Limits = append(a.Limits, held)
	}
	return a
}

// documentsMessage converts what a node knows of documents for gRPC.
func documentsMessage(d tenure.Documents) *quotadv1.DocumentsStatus {
	m := &quotadv1.DocumentsStatus{FileRefused: textOf(d.File), HeldLimits: int64(d.Held),
		Open: each(d.Open, epochText)}
	for _, r := range d.Regions {
		other := &quotadv1.RegionDocuments{Region: r.Region, Refused: textOf(r.Refused),
			Open: each(r.Open, epochText)}
		if r.Waited > 0 {
			other.Waited = durationpb.New(r.Waited)
		}
		m.Regions = append(m.Regions, other)
	}
	return m
}

func newOpenDocument(t tenure.Told) OpenDocument {
	return OpenDocument{epochText(t), storeMoment(t.At)}
}

func epochText(t tenure.Told) string { return t.Epoch.String() }

// textOf returns the text of an error, empty for nil.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// storeMoment returns the zero time for 0.
func storeMoment(at quantity.StoreTime) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(at)).UTC()
}
