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
)

// ErrRefused says that a receipt is not of this region, or is older than the last loss of its
// store's data.
var ErrRefused = errors.New("this region cannot refund the receipt")

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

// open checks the seal of a receipt and returns its content. The error is an *invalid.Field, or wraps
// ErrRefused.
func (s *Receipts) open(receipt string) (*receiptv1.Receipt, error) {
	if len(receipt) > maxBytes {
		return nil, invalid.Fieldf("receipt",
			"is longer than any receipt; send the receipt of a decision as it was given")
	}
	sealed, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(receipt, prefix))
	if err != nil || len(sealed) < sha256.Size {
		return nil, invalid.Fieldf("receipt", "is none; send the receipt of a decision as it was given")
	}
	body := sealed[sha256.Size:]
	r := &receiptv1.Receipt{}
	if proto.Unmarshal(body, r) != nil {
		return nil, invalid.Fieldf("receipt", "is none; send the receipt of a decision as it was given")
	}
	secret := s.config.Store.Secret()
	switch {
	case r.GetRegion() != s.config.Region:
		return nil, refused("it is of region %.64q, this is %q: send it there", r.GetRegion(), s.config.Region)
	case secret == "" || r.GetGeneration() != s.config.Store.Generation():
		return nil, refused("the region's store has lost its data since: there is nothing left to refund")
	case !hmac.Equal(sealed[:sha256.Size], seal(secret, body)):
		return nil, refused("it was not given by this region, or was changed")
	}
	return r, nil
}

// Receipt returns the buckets that a receipt is about, which are all of one domain. The error is an
// *invalid.Field, or wraps ErrRefused.
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
