package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// ErrOtherDocuments says that documents are open in the region that the caller does not name. The
// error is an *OtherDocuments.
var ErrOtherDocuments = errors.New("other limits documents are open in the region's store")

// OtherDocuments says which documents are open in a shard.
type OtherDocuments struct {
	Named, Found string // epochs, as a token has them
}

func (e *OtherDocuments) Error() string {
	return fmt.Sprintf("put policy %s in force: %s, %s: give this node that document, or one of a higher version",
		e.Named, ErrOtherDocuments.Error(), e.Found)
}

// Is says that the error is ErrOtherDocuments.
func (e *OtherDocuments) Is(target error) bool { return target == ErrOtherDocuments }

// Adopt puts an epoch in force in the region's store, shard by shard. The epoch names the documents
// that are open. From then on the store answers a call under another epoch with StatusUnknown,
// whichever node it comes from. Adopt returns the latest store time at which any script can have run
// under another epoch.
//
// A shard may have a document open that the epoch does not name. Unless that is older than the first
// document of the epoch, the shard keeps its epoch, and Adopt fails with ErrOtherDocuments.
//
// While a shard does not answer, no other one takes the new epoch: those that took it would refuse the
// old one, under which the node goes on. A shard may still fall silent in between. Calling Adopt again
// then brings the epoch to the others.
//
// folded names documents that are folded into those of the epoch: shards may still name them.
func (s *session) Adopt(ctx context.Context, epoch string, folded ...string) (last quantity.StoreTime, err error) {
	if len(s.shards) > 1 {
		if _, err := s.look(ctx, ""); err != nil {
			return 0, fmt.Errorf("put policy %s in force in the store: %w", epoch, err)
		}
	}
	return s.adopt(ctx, s.Generation(), Opening{Epoch: epoch, Folded: folded})
}

func (s *session) adopt(ctx context.Context, generation uint64, o Opening) (quantity.StoreTime, error) {
	marks := make([]quantity.StoreTime, len(s.shards))
	err := s.each(func(i int, shard Shard) (err error) {
		marks[i], err = s.adoptIn(ctx, shard, generation, o)
		return err
	})
	return max(slices.Max(marks), s.Latest()), err
}

// adoptIn puts an epoch in force in one shard. An epoch that is a guess does not replace another
// one.
func (s *session) adoptIn(ctx context.Context, shard Shard, generation uint64,
	o Opening) (quantity.StoreTime, error) {
	epoch := o.Epoch
	c := algorithms.Adopt{Generation: generation, Expected: epoch, Epoch: epoch}
	for range rounds {
		a, err := token[algorithms.Adopt, algorithms.Adopted](ctx, s, s.timeout, shard, c)
		switch {
		case err != nil:
			return 0, fmt.Errorf("put policy %s in force in the store: %w", epoch, err)
		case a.OK:
			return a.Mark, nil
		case a.Epoch == "":
			return 0, fmt.Errorf("put policy %s in force in the store: %w", epoch, ErrUnknownStore)
		case o.Guess || without(algorithms.MergeEpochs(a.Epoch, epoch), o.Folded) != epoch:
			return 0, &OtherDocuments{Named: epoch, Found: a.Epoch}
		}
		c.Expected, c.Forgotten = a.Epoch, forgotten(a.Epoch, epoch)
	}
	return 0, fmt.Errorf(
		"put policy %s in force in the store: other nodes keep putting others in force: look for two clusters that share it", epoch)
}

// without returns an epoch without some of the names.
func without(epoch string, names []string) string {
	return algorithms.JoinEpochs(slices.DeleteFunc(algorithms.SplitEpochs(epoch),
		func(name string) bool { return slices.Contains(names, name) }))
}

// forgotten returns the names of the notes with documents that one epoch names and another does
// not.
func forgotten(old, epoch string) (notes []string) {
	open := map[string]bool{}
	for _, name := range algorithms.SplitEpochs(epoch) {
		open[name] = true
	}
	for _, name := range algorithms.SplitEpochs(old) {
		if !open[name] {
			notes = append(notes, algorithms.DocumentNote(name))
		}
	}
	return notes
}

// Document returns the text of a document that some node of the region kept in the store by its
// epoch; empty: none did. The store need not be open.
func (s *session) Document(ctx context.Context, epoch string) (string, error) {
	return s.note(ctx, 0, algorithms.DocumentNote(epoch), "")
}

// KeepDocument keeps the text of a document in the store by its epoch, for other nodes of the
// region. The text stays until the document is no longer open, or the store loses its data. It
// fails with ErrUnknownStore unless the store stands under this generation; 0: it is not open yet.
func (s *session) KeepDocument(ctx context.Context, generation uint64, epoch, text string) error {
	_, err := s.note(ctx, generation, algorithms.DocumentNote(epoch), text)
	return err
}
