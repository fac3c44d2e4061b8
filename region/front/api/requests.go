package api

import (
	"errors"
	"slices"
	"strings"

	"github.com/quotad/quotad/region/decide/admit"
)

// The fields of each request, in the order in which error texts list them. A peek has no use for a
// request_id or a receipt, and refuses them as it does any unknown field.
var (
	peekFields   = []string{"domain", "descriptors", "cost"}
	checkFields  = append(slices.Clone(peekFields), "request_id", "receipt")
	refundFields = []string{"receipt"}
	resetFields  = []string{"limit", "domain", "descriptors"}
	batchFields  = []string{"requests"}
)

// decodeCheck reads and validates the JSON of a request that is to be charged. Every error is a
// *admit.FieldError.
func decodeCheck(body []byte) (admit.Request, error) { return decodeRequest(body, checkFields) }

// decodePeek reads and validates the JSON of a request that charges nothing. Every error is a
// *admit.FieldError.
func decodePeek(body []byte) (admit.Request, error) { return decodeRequest(body, peekFields) }

func decodeRequest(body []byte, fields []string) (admit.Request, error) {
	if err := wellFormed(body); err != nil {
		return admit.Request{}, err
	}
	q, err := readRequest(newDecoder(body), wholeBody, fields)
	if err != nil {
		return q, err
	}
	return q, q.Validate()
}

// readRequest reads a request, which is not validated. The field of an error that concerns all of
// it is whole.
func readRequest(d *decoder, whole string, fields []string) (admit.Request, error) {
	q := admit.Request{Cost: 1}
	err := d.fields(whole, fields, func(name string) (err error) {
		switch name {
		case "domain":
			q.Domain, err = d.text(name)
		case "descriptors":
			q.Descriptors, err = d.texts(name)
		case "cost":
			q.Cost, err = d.cost(name)
		case "request_id":
			q.ID, err = d.text(name)
		case "receipt":
			q.Receipt, err = d.truth(name)
		}
		return err
	})
	return q, err
}

// decodeBatch reads the JSON of a batch. Every error is a *admit.FieldError about the batch itself.
// A request that is not as decodeCheck would have it says so in Unread.
func decodeBatch(body []byte) (all []admit.Request, err error) {
	err = decode(body, batchFields, func(d *decoder, name string) error {
		return d.list(name, func(text []byte) error {
			q, err := readRequest(newDecoder(text), wholeRequest, checkFields)
			if problem, wrong := errors.AsType[*admit.FieldError](err); wrong {
				q = admit.Request{Unread: problem}
			}
			all = append(all, q)
			return batchSize(len(all))
		})
	})
	if err == nil {
		err = batchSize(len(all))
	}
	return all, err
}

// decodeRefund reads the JSON of a refund and returns the receipt, which the node checks. Every
// error is a *admit.FieldError.
func decodeRefund(body []byte) (receipt string, err error) {
	err = decode(body, refundFields, func(d *decoder, name string) (err error) {
		receipt, err = d.text(name)
		return err
	})
	return receipt, err
}

// place names a bucket.
type place struct {
	limit, domain string
	descriptors   map[string]string
}

// decodeReset reads the JSON of a reset, which the node checks. Every error is a *admit.FieldError.
func decodeReset(body []byte) (p place, err error) {
	err = decode(body, resetFields, func(d *decoder, name string) (err error) {
		switch name {
		case "limit":
			p.limit, err = d.text(name)
		case "domain":
			p.domain, err = d.text(name)
		case "descriptors":
			p.descriptors, err = d.texts(name)
		}
		return err
	})
	return p, err
}

// decode reads a JSON object that has only the given fields, and calls member to read each.
func decode(body []byte, fields []string, member func(d *decoder, name string) error) error {
	if err := wellFormed(body); err != nil {
		return err
	}
	d := newDecoder(body)
	return d.fields(wholeBody, fields, func(name string) error { return member(d, name) })
}

// thereAre lists names: "there are a, b and c".
func thereAre(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return "there is only " + names[0]
	}
	return "there are " + strings.Join(names[:last], ", ") + " and " + names[last]
}
