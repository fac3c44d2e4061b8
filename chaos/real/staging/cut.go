package staging

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quotad/quotad/chaos/play/caller"
)

// cut cuts all nodes of a region off from those of another. Direction "in" loses what the others
// send, "out" what is sent to them, "both" both. The cut ends by itself after d, at most
// caller.MostCut. If one of the nodes cannot make the cut, the others heal theirs.
func (s *Stage) cut(ctx context.Context, from, to, direction string, d time.Duration) error {
	s.note(from, to, true)
	err := each(s.places[from], func(p *place) error {
		return p.cut(ctx, to, direction, d)
	})
	if err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healTimeout)
	defer cancel()
	if s.heal(ctx, from, to) != nil {
		err = errors.Join(err,
			fmt.Errorf("some nodes of %s may stay cut off from %s for %v; it ends by itself", from,
				to, d))
	}
	return err
}

// Heal ends every cut that was made through this stage.
func (s *Stage) Heal(ctx context.Context) error {
	s.mu.Lock()
	var pairs [][2]string
	for pair := range s.cuts {
		pairs = append(pairs, pair)
	}
	s.mu.Unlock()
	var errs []error
	for _, pair := range pairs {
		errs = append(errs, s.heal(ctx, pair[0], pair[1]))
	}
	return errors.Join(errs...)
}

// heal ends the cuts of a region from another. What fails to heal stays noted for the next Heal.
func (s *Stage) heal(ctx context.Context, from, to string) error {
	err := each(s.places[from], func(p *place) error {
		return p.cut(ctx, to, "both", 0)
	})
	if err == nil {
		s.note(from, to, false)
	}
	return err
}

// note records that a cut was made, or that it was healed.
func (s *Stage) note(from, to string, cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cut {
		s.cuts[[2]string{from, to}] = true
	} else {
		delete(s.cuts, [2]string{from, to})
	}
}

// cut asks the node for a cut, or with 0 to heal.
func (p *place) cut(ctx context.Context, to, direction string, d time.Duration) error {
	lost, err := p.calls.Cut(ctx, to, direction, d)
	if err != nil {
		return told(err)
	}
	p.lost.Lock()
	defer p.lost.Unlock()
	switch {
	case lost < p.lost.last: // the node was started again
		p.lost.total += lost
	case p.lost.known:
		p.lost.total += lost - p.lost.last
	}
	p.lost.known, p.lost.last = true, lost
	return nil
}

// told adds to an error what can be done in the nodes file.
func told(err error) error {
	if errors.Is(err, caller.ErrUnknown) {
		return fmt.Errorf("%w; give token_file in the nodes file, the token of a caller with the roles "+
			"check and operate, or cert and key of one", err)
	}
	return err
}

func (s *Stage) noRegion(name string) error {
	return fmt.Errorf("the nodes file has no region %.70q; it has %s", name,
		strings.Join(s.Regions(), ", "))
}
