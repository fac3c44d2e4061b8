package receipts

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/policy"
	receiptv1 "github.com/quotad/quotad/proto/receipt/v1"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/memory/journal"
)

// ErrRefused says that a receipt is not of this region, or of so early a life of its store that nobody
// knows its seal any more.
var ErrRefused = errors.New("this region cannot settle the receipt")

// maxWhyBytes bounds the text why a receipt is refused, because it repeats what the caller sent.
const maxWhyBytes = 200

// refused returns an error that wraps ErrRefused, with its reason and what to do.
func refused(format string, args ...any) error {
	why := fmt.Sprintf(format, args...)
	if len(why) > maxWhyBytes {
		why = strings.ToValidUTF8(why[:maxWhyBytes], "") + "..."
	}
	return fmt.Errorf("%w: %s; %s", ErrRefused, why,
		"send the receipt as it was given to the region of the decision; trying again here does not help")
}

// prefix tells receipts from other tokens, and ensures that none begins with a dash.
const prefix = "qr1_"

// maxBytes is more than any receipt has, even one of the most limits that apply to one request with
// the longest keys.
const maxBytes = 64 << 10

// seal returns the authentication code of a receipt's body.
func seal(secret string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return mac.Sum(nil)
}

// Opened keeps the seal of the generation under which the store was opened, so that receipts of it are
// known after the store has lost its data.
func (s *Receipts) Opened() {
	one := journal.Seal{Generation: s.config.Store.Generation(), Secret: s.config.Store.Secret()}
	if one.Secret == "" || s.config.Journal == nil {
		return
	}
	if err := s.config.Journal.KeepSeal(one); err != nil {
		s.config.Log.Warn("the seal of receipts was not written to the journal: those given now are refused after a loss of the store",
			"err", err)
	}
}

// secretOf returns what the receipts of a generation are sealed with; empty: that is not known any more.
func (s *Receipts) secretOf(generation uint64) string {
	if generation == s.config.Store.Generation() {
		return s.config.Store.Secret()
	}
	if s.config.Journal == nil || generation > s.config.Store.Generation() {
		return ""
	}
	for _, one := range s.config.Journal.Seals() {
		if one.Generation == generation {
			return one.Secret
		}
	}
	return ""
}

// open checks the seal of a receipt and returns its content. lost says that the store has lost its data
// since. The error is an *invalid.Field, or wraps ErrRefused.
func (s *Receipts) open(receipt string) (r *receiptv1.Receipt, lost bool, err error) {
	if len(receipt) > maxBytes {
		return nil, false, invalid.Fieldf("receipt",
			"is longer than any receipt; send the receipt of a decision as it was given")
	}
	sealed, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(receipt, prefix))
	if err != nil || len(sealed) < sha256.Size {
		return nil, false, invalid.Fieldf("receipt", "is none; send the receipt of a decision as it was given")
	}
	body := sealed[sha256.Size:]
	r = &receiptv1.Receipt{}
	if proto.Unmarshal(body, r) != nil {
		return nil, false, invalid.Fieldf("receipt", "is none; send the receipt of a decision as it was given")
	}
	secret := ""
	if s.config.Store.Secret() != "" {
		secret = s.secretOf(r.GetGeneration())
	}
	switch {
	case r.GetRegion() != s.config.Region:
		return nil, false, refused("it is of region %.64q, this is %q: send it there", r.GetRegion(), s.config.Region)
	case secret == "":
		return nil, false, refused("the region's store has lost its data since, and its seal is not known any more: it counts as used")
	case !hmac.Equal(sealed[:sha256.Size], seal(secret, body)):
		return nil, false, refused("it was not given by this region, or was changed")
	}
	return r, r.GetGeneration() != s.config.Store.Generation(), nil
}

// Receipt returns the buckets that a receipt is about, which are all of one domain. The error is an
// *invalid.Field, or wraps ErrRefused.
func (s *Receipts) Receipt(receipt string) ([]policy.BucketRef, error) {
	r, _, err := s.open(receipt)
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
