package tenure

import (
	"fmt"
	"slices"

	"github.com/quotad/quotad/policy"
)

// Elsewhere is an error of [Config.MayBegin]: other regions have these documents open. The store is
// then opened under them, beside those that the node knows.
type Elsewhere struct{ Documents []*policy.Document }

func (e *Elsewhere) Error() string {
	return fmt.Sprintf("%d limits documents are open in other regions", len(e.Documents))
}

// Has reports whether a document is among them.
func (e *Elsewhere) Has(epoch policy.Epoch) bool {
	return slices.ContainsFunc(e.Documents,
		func(d *policy.Document) bool { return d.Epoch() == epoch })
}

// Add adds a document by its text. It fails if the text is not that of the epoch.
func (e *Elsewhere) Add(epoch policy.Epoch, source []byte) error {
	d, err := policy.ParseOpen("document "+epoch.String(), source)
	if err != nil {
		return err
	}
	if d.Epoch() != epoch {
		return fmt.Errorf("another region calls %s document %s: run one version of quotad in both",
			d.Epoch(), epoch)
	}
	e.Documents = append(e.Documents, d)
	return nil
}
