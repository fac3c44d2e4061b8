package api

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quotad/quotad/policy"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/tenure"
)

// newDocuments converts what a node knows of documents for JSON.
func newDocuments(d tenure.Documents) DocumentsStatus {
	a := DocumentsStatus{Open: openDocuments(d.Open), Held: d.Held, Regions: []RegionDocuments{},
		Limits: []HeldLimit{}, FileRefused: textOf(d.File)}
	for _, r := range d.Regions {
		a.Regions = append(a.Regions, RegionDocuments{Region: r.Region,
			Open: openDocuments(r.Open), Refused: textOf(r.Refused), Waited: Milliseconds(r.Waited)})
	}
	for _, l := range d.Limits {
		held := HeldLimit{Domain: l.Limit.Domain, Limit: l.Limit.Name, Removed: l.Removed,
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
	m := &quotadv1.DocumentsStatus{FileRefused: textOf(d.File), HeldLimits: int64(d.Held)}
	for _, one := range d.Open {
		m.Open = append(m.Open, one.Epoch.String())
	}
	for _, r := range d.Regions {
		other := &quotadv1.RegionDocuments{Region: r.Region, Refused: textOf(r.Refused)}
		for _, one := range r.Open {
			other.Open = append(other.Open, one.Epoch.String())
		}
		if r.Waited > 0 {
			other.Waited = durationpb.New(r.Waited)
		}
		m.Regions = append(m.Regions, other)
	}
	return m
}

func openDocuments(all []tenure.Told) []OpenDocument {
	open := []OpenDocument{}
	for _, one := range all {
		open = append(open, OpenDocument{one.Epoch.String(), storeMoment(one.At)})
	}
	return open
}

func epochTexts(all []policy.Epoch) []string {
	texts := []string{}
	for _, e := range all {
		texts = append(texts, e.String())
	}
	return texts
}

// textOf returns the text of an error, empty for nil.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// storeMoment returns nil for 0.
func storeMoment(at quantity.StoreTime) *time.Time {
	if at == 0 {
		return nil
	}
	return moment(time.UnixMicro(int64(at)))
}
