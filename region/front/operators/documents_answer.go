package operators

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/front/asjson"
	"github.com/quotad/quotad/region/front/wire"
	"github.com/quotad/quotad/region/memory/tenure"
)

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
