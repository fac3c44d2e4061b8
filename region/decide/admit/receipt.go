package admit

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/policy"
	receiptv1 "github.com/quotad/quotad/proto/receipt/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/memory/tenure"
	"github.com/quotad/quotad/region/trade/rights"
)

// ErrReceipt says that a receipt is not of this region, or is older than the last loss of its
// store's data.
var ErrReceipt = errors.New("this region cannot refund the receipt")

// Receipts gives receipts of decisions, and gives back what they charged. Safe for concurrent use.
type Receipts struct {
	region string
	store  *store.Store
	tenure *tenure.Tenure
	rights *rights.Engine
	life   string // random: tells this start of the node from all others
	given  atomic.Uint64
	units  *prometheus.CounterVec // given back, by limit
	back   prometheus.Counter     // of those that clients took
}

func newReceipts(c Config, life string) *Receipts {
	return &Receipts{region: c.Region, store: c.Store, tenure: c.Tenure, rights: c.Rights, life: life,
		units: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "quotad_refunded_units_total",
			Help: "Units given back by refunds, by limit."}, []string{"limit"}),
		back: prometheus.NewCounter(prometheus.CounterOpts{Name: "quotad_client_returned_units_total",
			Help: "Units that clients gave back (GiveBack)."})}
}

// Collectors returns the metrics that are counted as units are given back.
func (s *Receipts) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.units, s.back}
}

// give returns what a caller needs to have a decision refunded. It lists what was charged and is
// sealed with a secret that the region's store keeps, so any node of the region can refund it, also
// after a restart. It is empty if nothing was charged.
func (s *Receipts) give(q Request, all []*rules.Applied, a queue.Answer) string {
	r := &receiptv1.Receipt{Region: s.region, Generation: s.store.Generation(),
		AtUs: int64(a.Decided.Now), Cost: int64(q.Cost),
		Id: fmt.Sprintf("%s:%d", s.life, s.given.Add(1))}
	if q.ID != "" && !a.Decided.TooOften { // all repeats of a decision have the same receipt
		r.Once = onceKey(q, all)
		r.Id = fmt.Sprintf("%d:%s", a.Decided.Now, r.GetOnce())
	}
	for i, v := range a.Own().Verdicts {
		if v.Retry == 0 {
			r.Charges = append(r.Charges, &receiptv1.Charge{Bucket: []byte(all[i].Bucket.ID),
				Cell: int64(a.Decided.Buckets[i].Cell), AtUs: int64(a.At(i))})
		}
	}
	secret := s.store.Secret()
	body, err := proto.Marshal(r)
	if err != nil || len(r.Charges) == 0 || secret == "" {
		return ""
	}
	return receiptPrefix + base64.RawURLEncoding.EncodeToString(append(seal(secret, body), body...))
}

// receiptPrefix tells receipts from other tokens, and ensures that none begins with a dash.
const receiptPrefix = "qr1_"

// maxReceiptBytes is more than any receipt has, even one of the most limits that apply to one
// request with the longest keys.
const maxReceiptBytes = 64 << 10

// seal returns the authentication code of a receipt's body.
func seal(secret string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return mac.Sum(nil)
}

// open checks the seal of a receipt and returns its content. The error is an *invalid.Field, or wraps
// ErrReceipt.
func (s *Receipts) open(receipt string) (*receiptv1.Receipt, error) {
	if len(receipt) > maxReceiptBytes {
		return nil, invalid.Fieldf("receipt",
			"is longer than any receipt; send the receipt of a decision as it was given")
	}
	sealed, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(receipt, receiptPrefix))
	if err != nil || len(sealed) < sha256.Size {
		return nil, invalid.Fieldf("receipt", "is none; send the receipt of a decision as it was given")
	}
	body := sealed[sha256.Size:]
	r := &receiptv1.Receipt{}
	if proto.Unmarshal(body, r) != nil {
		return nil, invalid.Fieldf("receipt", "is none; send the receipt of a decision as it was given")
	}
	secret := s.store.Secret()
	switch {
	case r.GetRegion() != s.region:
		return nil, fmt.Errorf("%w: it is of region %.64q, this is %q: send it there", ErrReceipt,
			r.GetRegion(), s.region)
	case secret == "" || r.GetGeneration() != s.store.Generation():
		return nil, fmt.Errorf(
			"%w: the region's store has lost its data since: there is nothing left to refund",
			ErrReceipt)
	case !hmac.Equal(sealed[:sha256.Size], seal(secret, body)):
		return nil, fmt.Errorf("%w: it was not given by this region, or was changed", ErrReceipt)
	}
	return r, nil
}

// Receipt returns the buckets that a receipt is about, which are all of one domain. The error is a
// *invalid.Field, or wraps ErrReceipt.
func (s *Receipts) Receipt(receipt string) ([]policy.BucketRef, error) {
	r, err := s.open(receipt)
	if err != nil {
		return nil, err
	}
	all := make([]policy.BucketRef, len(r.GetCharges()))
	for i, charge := range r.GetCharges() {
		if all[i], err = policy.ParseBucketID(policy.BucketID(charge.GetBucket())); err != nil {
			return nil, invalid.Fieldf("receipt", "names a bucket that cannot be read")
		}
	}
	return all, nil
}

// Refunded is the outcome of a refund, charge by charge.
type Refunded struct {
	Charges  []RefundedCharge
	Repeated bool // the receipt had been refunded before; this is the outcome of that refund
}

// RefundedCharge is the outcome of the refund of one charge.
type RefundedCharge struct {
	Limit  string
	Units  quantity.Units // units given back
	Reason string         // why none were given back; empty if some were
}

// Refund gives back what a decision charged. A second refund of the same receipt gives nothing
// more. Units of a cell that no longer counts, and turns of a leaky_bucket, are not given back. The
// error is an *invalid.Field, ErrReceipt, or that of the store.
func (s *Receipts) Refund(ctx context.Context, receipt string) (Refunded, error) {
	r, err := s.open(receipt)
	if err != nil {
		return Refunded{}, err
	}
	return s.refund(ctx, r)
}

// refund gives back the cost of a receipt that was opened.
func (s *Receipts) refund(ctx context.Context, r *receiptv1.Receipt) (Refunded, error) {
	current := s.tenure.Rules()
	calls, places, err := refunds(current, r)
	if err != nil {
		return Refunded{}, err
	}
	out, gives := Refunded{Charges: make([]RefundedCharge, len(r.GetCharges()))}, false
	for i, c := range calls {
		for k := range c.Charges {
			c.Charges[k].ExistsUntil = s.rights.ExistsUntil(places[i][k].bucket)
		}
		done, err := s.store.Refund(ctx, c)
		for _, at := range places[i] {
			current.ForgetDenials(at.bucket, max(done.Now, s.store.Latest()))
		}
		if err != nil { // if the receipt is sent again, the refund goes on from here
			for _, at := range places[i] {
				if b := current.Find(at.bucket); b != nil {
					s.rights.Lose(ctx, b, err)
				}
			}
			return Refunded{}, err
		}
		out.Repeated = out.Repeated || done.Repeated
		for k, back := range done.Charges {
			gives = gives || back.Units > 0 && !done.Repeated
			out.Charges[places[i][k].index] = s.refunded(places[i][k].limit, back, done.Repeated)
		}
	}
	// A shard of short windows forgets a refund before the others do. It gives nothing more then.
	out.Repeated = out.Repeated && !gives
	return out, nil
}

// place says where a charge is in its receipt.
type place struct {
	index  int
	limit  string
	bucket string // the bucket's id
}

// refunds returns the calls that refund the charges of a receipt, one for each shard, and the
// places of their charges.
func refunds(current *rules.Rules, r *receiptv1.Receipt) (calls []algorithms.Refund,
	places [][]place, err error) {
	for i, charge := range r.GetCharges() {
		id := string(charge.GetBucket())
		ref, err := policy.ParseBucketID(policy.BucketID(id))
		if err != nil {
			return nil, nil, invalid.Fieldf("receipt", "names a bucket that cannot be read")
		}
		taken := algorithms.Charge{Target: algorithms.Target{Key: current.Key(id)},
			Cell: quantity.Cell(charge.GetCell())}
		if b := current.Find(id); b != nil {
			taken.Terms = b.Terms(current.Region)
		}
		shard := store.ShardOf(taken.Key)
		n := slices.IndexFunc(calls,
			func(c algorithms.Refund) bool { return store.ShardOf(c.Receipt) == shard })
		if n < 0 {
			n = len(calls)
			c := algorithms.Refund{Fence: algorithms.Fence{Epoch: current.Epoch},
				Receipt: store.RefundKey(shard, r.GetId()),
				Once:    store.OnceKey(shard, "none"),
				At:      quantity.StoreTime(cmp.Or(charge.GetAtUs(), r.GetAtUs())),
				Cost:    quantity.Units(r.GetCost())}
			if once := r.GetOnce(); once != "" {
				c.Once = store.OnceKeyIn(shard, once)
			}
			calls, places = append(calls, c), append(places, nil)
		}
		calls[n].Charges = append(calls[n].Charges, taken)
		places[n] = append(places[n], place{i, ref.Name, id})
	}
	return calls, places, nil
}

// refunded describes and counts the outcome of one charge.
func (s *Receipts) refunded(limit string, back algorithms.Back, repeated bool) RefundedCharge {
	if back.Units == 0 && back.Refusal == algorithms.NotRefused { // a reset or a refill came before
		back.Refusal = algorithms.NoLongerWeighs
	}
	if !repeated {
		s.units.WithLabelValues(limit).Add(float64(back.Units))
	}
	return RefundedCharge{Limit: limit, Units: back.Units, Reason: back.Refusal.String()}
}

// GiveBack gives back units of what a client took, or of what a decision charged: 1 to as many as
// were charged. A receipt gives back once, by GiveBack or by Refund. The error is as Refund's.
func (s *Receipts) GiveBack(ctx context.Context, receipt string,
	units quantity.Units) (Refunded, error) {
	r, err := s.open(receipt)
	if err != nil {
		return Refunded{}, err
	}
	if units < 1 || int64(units) > r.GetCost() {
		return Refunded{}, invalid.Fieldf("units", "must be 1 to the %d units that the receipt is for", r.GetCost())
	}
	r.Cost = int64(units)
	done, err := s.refund(ctx, r)
	if err == nil && !done.Repeated && len(done.Charges) > 0 {
		s.back.Add(float64(done.Charges[0].Units))
	}
	return done, err
}
