package rights

import (
	"slices"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/memory/tenure"
)

// hearDocuments passes on what other regions say of their limits documents, with every message and
// reply.
func (e *Engine) hearDocuments(out exchange.Effects) {
	for _, told := range out.Told {
		e.config.Tenure.Hear(told.Region, toldOf(told.Documents))
	}
}

// tellDocuments adds what this region has to say of its limits documents to messages and replies.
func (e *Engine) tellDocuments(out exchange.Effects) {
	if len(out.Calls) == 0 && len(out.Replies) == 0 {
		return
	}
	all := e.Documents()
	for i := range out.Calls {
		out.Calls[i].Message.Documents = all
	}
	for i := range out.Replies {
		out.Replies[i].Reply.Documents = all
	}
}

// hasNews reports whether this region says something else of its limits documents than at the last
// call.
func (s *Stepper) hasNews() bool {
	before := s.said
	s.said = s.Documents()
	return !slices.EqualFunc(s.said, before, func(a, b exchange.Acknowledged) bool {
		return a.Version == b.Version && a.Digest == b.Digest && a.At == b.At && slices.Equal(a.Fenced, b.Fenced)
	})
}

// Documents returns what this region has to say of its limits documents.
func (e *Engine) Documents() (all []exchange.Acknowledged) {
	for _, d := range e.config.Tenure.Statement() {
		told := exchange.Acknowledged{Version: d.Epoch.Version, Digest: d.Epoch.Digest, At: d.At}
		for _, f := range d.Fenced {
			told.Fenced = append(told.Fenced, exchange.Fence(f))
		}
		all = append(all, told)
	}
	return all
}

func toldOf(documents []exchange.Acknowledged) []tenure.Told {
	all := make([]tenure.Told, len(documents))
	for i, d := range documents {
		all[i] = tenure.Told{Epoch: policy.Epoch{Version: d.Version, Digest: d.Digest}, At: d.At}
		for _, f := range d.Fenced {
			all[i].Fenced = append(all[i].Fenced, tenure.Fenced(f))
		}
	}
	return all
}
