package copies

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// n2 is the mate.
var n2 = Mate{"us", "n2:8082"}

// disk is a dumb journal: the latest use of each bucket.
type disk map[string]Use

func (d disk) write(all []Use) {
	for _, u := range all {
		d[u.Bucket] = u
	}
}

// pages shows the disk three uses at a time.
func (d disk) pages(from string) (page []Use, next string, err error) {
	for _, bucket := range slices.Sorted(func(yield func(string) bool) {
		for b := range d {
			if b >= from && !yield(b) {
				return
			}
		}
	}) {
		if len(page) == 3 {
			return page, bucket, nil
		}
		page = append(page, d[bucket])
	}
	return page, "", nil
}

// TestACompleteCopyHasAll: whatever is lost on the way, and whoever starts anew, a copy that is said to be
// complete as of a time has all that the node had seen until then.
func TestACompleteCopyHasAll(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		journal, copied := disk{}, disk{}
		life, now := uint64(1), quantity.StoreTime(0)
		sender, receiver := NewSender("us", "n1", life, journal.pages), &Receiver{}
		t.Repeat(map[string]func(*rapid.T){
			"see": func(t *rapid.T) {
				now += 10
				var seen []Use
				for range rapid.IntRange(0, 5).Draw(t, "uses") {
					seen = append(seen, Use{Bucket: fmt.Sprint(rapid.IntRange(0, 20).Draw(t, "bucket")), At: now, Units: 1})
				}
				journal.write(seen)
				sender.To([]Mate{n2})
				sender.Note(Seen{Uses: seen, Since: 5, AsOf: now, All: true})
			},
			"tell": func(t *rapid.T) {
				p, ok, err := sender.Next(n2)
				if err != nil || !ok || rapid.Bool().Draw(t, "lost") {
					return
				}
				next := uint64(0)
				for range rapid.IntRange(1, 2).Draw(t, "times") { // a call may come twice
					for _, u := range p.Uses {
						if u.At >= copied[u.Bucket].At {
							copied[u.Bucket] = u
						}
					}
					next = receiver.Take(0, p)
				}
				if !rapid.Bool().Draw(t, "answer lost") {
					sender.Answered(n2, p, next)
				}
			},
			"the node starts anew": func(*rapid.T) {
				life++
				sender = NewSender("us", "n1", life, journal.pages)
			},
			"the other node starts anew": func(*rapid.T) {
				receiver = &Receiver{}
				clear(copied)
			},
			"the other node is not told for a while": func(*rapid.T) { sender.To(nil) },
			"": func(t *rapid.T) {
				for _, c := range receiver.Complete() {
					for _, u := range journal {
						if u.At <= c.Until && copied[u.Bucket].At < u.At {
							t.Fatalf("complete as of %d, and lacks %+v", c.Until, u)
						}
					}
					if c.Node != "n1" || c.Since != 5 || c.Until > now {
						t.Fatalf("%+v at %d", c, now)
					}
				}
			},
		})
		// In the end nothing is lost any more.
		now += 10
		sender.To([]Mate{n2})
		sender.Note(Seen{Since: 5, AsOf: now, All: true})
		for range 50 {
			p, ok, _ := sender.Next(n2)
			if !ok {
				break
			}
			for _, u := range p.Uses {
				copied[u.Bucket] = u
			}
			sender.Answered(n2, p, receiver.Take(0, p))
		}
		have, _ := sender.Numbers(now)
		if all := receiver.Complete(); len(all) == 0 || all[len(all)-1] != (Copy{Node: "n1", Life: life, Since: 5, Until: now}) || len(copied) != len(journal) || have != 1 {
			t.Fatalf("in the end %+v at %d, %d of %d uses", all, now, len(copied), len(journal))
		}
	})
}

// TestTooMuchWaits: what a mate that does not answer is not told is bounded. Then all is told anew.
func TestTooMuchWaits(t *testing.T) {
	journal := disk{}
	s := NewSender("us", "n1", 1, journal.pages)
	s.To([]Mate{n2})
	s.Note(Seen{AsOf: 1})
	first, _, _ := s.Next(n2)
	s.Answered(n2, first, 1)
	for i := range maxQueued + 1 {
		u := []Use{{Bucket: fmt.Sprint("b", i%10), At: quantity.StoreTime(i)}}
		journal.write(u)
		s.Note(Seen{Uses: u, AsOf: quantity.StoreTime(i)})
	}
	have, anew := s.Numbers(maxQueued)
	if p, ok, err := s.Next(n2); !ok || err != nil || p.Number != 0 || len(p.Uses) != 3 || anew != 1 || have != 0 {
		t.Errorf("part %d of %d uses, %v %v, anew %d times, %d have a copy", p.Number, len(p.Uses), ok, err, anew, have)
	}
}

// TestAJournalThatCannotBeRead: nothing is told then.
func TestAJournalThatCannotBeRead(t *testing.T) {
	broken := errors.New("broken")
	s := NewSender("us", "n1", 1, func(string) ([]Use, string, error) { return nil, "", broken })
	s.To([]Mate{n2})
	s.Note(Seen{AsOf: 1})
	if _, ok, err := s.Next(n2); ok || !errors.Is(err, broken) {
		t.Errorf("%v %v", ok, err)
	}
}

// TestCopiesAreBounded: of more nodes than a region can have, those that told last are kept.
func TestCopiesAreBounded(t *testing.T) {
	var r Receiver
	for i := range maxLives + 5 {
		now := time.Duration(2 * i)
		r.Take(now, Part{Node: fmt.Sprintf("n%03d", i), Until: 1})
		r.Take(now+1, Part{Node: "n000", Until: 1})
	}
	all := r.Complete()
	if len(all) != maxLives || all[0].Node != "n000" || all[1].Node != "n006" {
		t.Errorf("%d copies: %v", len(all), all[:2])
	}
}

// TestACopyOfANodeThatGoesOn: a node that is heard of and tells nothing more goes on without a mate. Its
// copy is complete again as soon as it tells.
func TestACopyOfANodeThatGoesOn(t *testing.T) {
	var r Receiver
	lives := func(node string) bool { return node == "lives" }
	for _, node := range []string{"lives", "dead"} {
		r.Take(0, Part{Node: node, Until: 5})
	}
	for _, step := range []struct {
		now  time.Duration
		want string
	}{{silence, "[{dead 0 0 5 0 0} {lives 0 0 5 0 0}]"}, {silence + 1, "[{dead 0 0 5 0 0}]"}} {
		r.Watch(step.now, lives)
		if got := fmt.Sprint(r.Complete()); got != step.want {
			t.Errorf("after %v %s, want %s", step.now, got, step.want)
		}
	}
	if next := r.Take(silence+2, Part{Node: "lives", Number: 1, Until: 7}); next != 2 {
		t.Errorf("the next part is %d", next)
	}
	r.Watch(silence+3, lives)
	if got := fmt.Sprint(r.Complete()); got != "[{dead 0 0 5 0 0} {lives 0 0 7 0 0}]" {
		t.Errorf("once it tells again %s", got)
	}
}

// TestSinceIsTakenWithItsUses: a node that has read its store knows more than before. Its mate does so only
// once it has all of that.
func TestSinceIsTakenWithItsUses(t *testing.T) {
	journal := disk{}
	s, r := NewSender("us", "n1", 1, journal.pages), &Receiver{}
	s.To([]Mate{n2})
	tell := func() string {
		p, ok, err := s.Next(n2)
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		s.Answered(n2, p, r.Take(0, p))
		return fmt.Sprint(r.Complete())
	}
	s.Note(Seen{Since: 1000, AsOf: 1000})
	if got := tell(); got != "[{n1 1 1000 1000 0 0}]" {
		t.Errorf("at first %s", got)
	}
	var read []Use
	for range MaxUses + 1 {
		read = append(read, Use{Bucket: "x", At: 1001, Units: 1})
	}
	s.Note(Seen{Uses: read, Read: 900, AsOf: 1001})
	if got := tell(); got != "[{n1 1 1000 1000 900 0}]" {
		t.Errorf("with a part %s", got)
	}
	if got := tell(); got != "[{n1 1 0 1001 900 0}]" {
		t.Errorf("with all %s", got)
	}
}
