package serving

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/front/audit"
)

// adoptTimeout bounds the time to put a document in force.
const adoptTimeout = 10 * time.Second

// reload puts new limits documents in force while a node serves.
type reload struct {
	node     *region.Node
	path     string
	inForce  *policy.Document // taken from the file last
	audit    *audit.Log
	log      *slog.Logger
	refusals prometheus.Counter
}

// newReload returns the reload of a node, for which inForce is the document at its start. Its
// metric joins the node's.
func newReload(node *region.Node, path string, inForce *policy.Document, audited *audit.Log,
	log *slog.Logger) *reload {
	r := &reload{node: node, path: path, inForce: inForce, audit: audited, log: log,
		refusals: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotad_policy_refused_total",
			Help: "Readings of the limits document that could not be put in force; the last good one stayed."})}
	node.Metrics().MustRegister(r.refusals)
	return r
}

// watch reads the document and puts it in force whenever the file changes or hup has a signal,
// until ctx ends. The error says that it could not start.
func (r *reload) watch(ctx context.Context, path string, hup <-chan os.Signal) error {
	adopt := func(d *policy.Document) error { return r.adopt(ctx, d) }
	return policy.Watch(ctx, path, hup, r.inForce, adopt, r.refused)
}

// adopt puts a document in force.
func (r *reload) adopt(ctx context.Context, d *policy.Document) error {
	ctx, cancel := context.WithTimeout(ctx, adoptTimeout)
	defer cancel()
	e := audit.OfDocument(r.node.Document(), d)
	e.Who, e.From, e.Outcome = byFile, r.path, audit.Done
	err := policy.CheckStep(r.node.Document(), d)
	if err == nil {
		err = r.node.Adopt(ctx, d)
	}
	if err == nil {
		r.inForce = d
		r.node.NoteFile(nil)
	} else {
		e.Outcome, e.Why = audit.Failed, err.Error()
	}
	r.audit.Write(e)
	return err
}

// refused logs and counts a document that was not put in force; nil: the file was mended.
func (r *reload) refused(err error) {
	if err == nil {
		r.node.NoteFile(nil)
		r.log.Info("the limits document's file is mended: it has what was taken from it last", "epoch",
			r.inForce.Epoch().String())
		return
	}
	r.refusals.Inc()
	r.node.NoteFile(err)
	r.log.Error("the limits document was not put in force; the last good one stays", "in_force",
		r.node.Document().Epoch().String(), "err", err)
}
