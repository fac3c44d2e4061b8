package callers

import (
	"errors"
	"slices"

	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/wire"
)

// The fields of each request, in the order in which error texts list them. A peek has no use for a
// request_id or a receipt, and refuses them as it does any unknown field.
var (
	peekFields   = []string{"domain", "descriptors", "cost"}
	reportFields = append(slices.Clone(peekFields), "request_id")
	checkFields  = append(slices.Clone(peekFields), "request_id", "receipt", "question")
	settleFields = []string{"receipt", "used"}
)

// wholeRequest is the field of an error that concerns all of a request of a batch.
const wholeRequest = "request"

// decodeCheck reads and validates the JSON of a request that is to be charged. Every error is a
// *invalid.Field.
func decodeCheck(body []byte) (admit.Request, error) { return decodeRequest(body, checkFields) }

// decodePeek reads and validates the JSON of a request that charges nothing. Every error is a
// *invalid.Field.
func decodePeek(body []byte) (admit.Request, error) { return decodeRequest(body, peekFields) }

// decodeReport reads and validates the JSON of a report. Every error is a *invalid.Field.
func decodeReport(body []byte) (admit.Request, error) { return decodeRequest(body, reportFields) }

func decodeRequest(body []byte, fields []string) (admit.Request, error) {
	d, err := wire.NewDecoder(body)
	if err != nil {
		return admit.Request{}, err
	}
	q, err := readRequest(d, wire.WholeBody, fields)
	if err != nil {
		return q, err
	}
	return q, q.Validate()
}

// readRequest reads a request, which is not validated. The field of an error that concerns all of
// it is whole.
func readRequest(d *wire.Decoder, whole string, fields []string) (admit.Request, error) {
	q := admit.Request{Cost: 1}
	err := d.Fields(whole, fields, func(name string) (err error) {
		switch name {
		case "domain":
			q.Domain, err = d.Text(name)
		case "descriptors":
			q.Descriptors, err = d.Texts(name)
		case "cost":
			q.Cost, err = d.Units(name)
		case "request_id":
			q.ID, err = d.Text(name)
		case "receipt":
			q.Receipt, err = d.Truth(name)
		case "question":
			q.Question, err = d.Truth(name)
		}
		return err
	})
	return q, err
}

// decodeBatch reads the JSON of a batch. Every error is an *invalid.Field about the batch itself.
// A request that is not as decodeCheck would have it says so in Unread.
func decodeBatch(body []byte) (all []admit.Request, err error) {
	err = wire.DecodeList(body, "requests", func(d *wire.Decoder) error {
		q, err := readRequest(d, wholeRequest, checkFields)
		if problem, wrong := errors.AsType[*invalid.Field](err); wrong {
			q = admit.Request{Unread: problem}
		}
		all = append(all, q)
		return batchSize(len(all))
	})
	if err == nil {
		err = batchSize(len(all))
	}
	return all, err
}

// decodeSettle reads the JSON of a settlement; the node checks the receipt. Every error is an
// *invalid.Field.
func decodeSettle(body []byte) (q settlement, err error) {
	said := false
	err = wire.Decode(body, settleFields, func(d *wire.Decoder, name string) (err error) {
		if name == "used" {
			said = true
			q.used, err = d.Units(name)
			return err
		}
		q.receipt, err = d.Text(name)
		return err
	})
	if err == nil && !said {
		err = usedMissing
	}
	return q, err
}
