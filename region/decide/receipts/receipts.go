package receipts

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"log/slog"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/quotad/quotad/allocator/exchange"
	receiptv1 "github.com/quotad/quotad/proto/receipt/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/store"
)

// Receipts gives receipts of what was charged, and settles them. Safe for concurrent use.
type Receipts struct {
	config Config
	life   string // random: tells this start of the node from all others
	given  atomic.Uint64
	units  *prometheus.CounterVec // given back, by limit
}

// Config holds what receipts are given and settled with.
type Config struct {
	Region string
	Store  *store.Store
	Rules  func() *rules.Rules // in force
	Rights Rights
	// Journal keeps the seals of generations; nil: they are not kept.
	Journal *journal.Journal
	// Charged counts what was charged of a limit beyond what was reserved, and how much of that did not
	// fit.
	Charged func(limit string, units, owed quantity.Units)
	Log     *slog.Logger
}

// Rights knows until when buckets exist, and has those restored that the store lost.
type Rights interface {
	// ExistsUntil returns until when the bucket of an id exists, as far as this node knows.
	ExistsUntil(id string) quantity.StoreTime
	// Lose takes a store's error about a bucket. It reports whether the bucket is lost, and is
	// restored.
	Lose(ctx context.Context, b *exchange.Bucket, err error) bool
}

// New returns what gives the receipts of one start of a node.
func New(c Config) *Receipts {
	return &Receipts{config: c, life: rand.Text(),
		units: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "quotad_given_back_units_total",
			Help: "Units given back of what was charged, by limit: what was reserved and not used (Settle), and negative hits."}, []string{"limit"})}
}

// Collectors returns the metrics that are counted as units are given back.
func (s *Receipts) Collectors() []prometheus.Collector { return []prometheus.Collector{s.units} }

// Give returns what a caller needs to have a charge settled. It lists what was charged and is sealed
// with a secret that the region's store keeps, so any node of the region can settle it, also after a
// restart. It is empty if nothing was charged.
func (s *Receipts) Give(w queue.Ask, a queue.Answer) string {
	r := &receiptv1.Receipt{Region: s.config.Region, Generation: s.config.Store.Generation(),
		AtUs: int64(a.Decided.Now), Cost: int64(w.Cost),
		Id: fmt.Sprintf("%s:%d", s.life, s.given.Add(1))}
	if w.Once != "" && !a.Decided.TooOften { // all repeats of a decision have the same receipt
		r.Once, r.Id = w.Once, fmt.Sprintf("%d:%s", a.Decided.Now, w.Once)
	}
	for i, v := range a.Own().Verdicts {
		if v.Retry == 0 {
			r.Charges = append(r.Charges, &receiptv1.Charge{Bucket: []byte(w.Applied[i].Bucket.ID),
				Cell: int64(a.Decided.Buckets[i].Cell), AtUs: int64(a.At(i))})
		}
	}
	secret := s.config.Store.Secret()
	body, err := proto.Marshal(r)
	if err != nil || len(r.Charges) == 0 || secret == "" {
		return ""
	}
	return prefix + base64.RawURLEncoding.EncodeToString(append(seal(secret, body), body...))
}
