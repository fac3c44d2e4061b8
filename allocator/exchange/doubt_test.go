//go:build !race

package exchange

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

const (
	doubtDay   = 86_400 * allocator.Second
	doubtStore = 20_000*doubtDay + doubtDay/2 // the store's time when the node's is 0
)

// doubting is the only node of region us. Its buckets have windows of a day and are recovered after
// a loss. Region eu answers, region ap only once it is back.
type doubting struct {
	*testing.T
	m    *Machine
	now  quantity.NodeTime
	back bool
}

func newDoubting(t *testing.T) *doubting {
	d := &doubting{T: t, m: New("us", "n1", Options{}), now: allocator.Second}
	d.stand(7, "1-x")
	d.tick()
	return d
}

func (d *doubting) stand(generation uint64, epoch string) {
	d.m.Step(d.now, TenureChanged{Generation: generation, Epoch: epoch,
		Peers: []string{"eu", "ap"}})
}

func (d *doubting) store() quantity.StoreTime { return quantity.StoreTime(doubtStore + d.now) }

// bucket returns a bucket of which each region is entitled to 100 units.
func (d *doubting) bucket(id string) *Bucket {
	return &Bucket{ID: id, Epoch: d.m.epoch, Kind: algorithms.FixedWindow, Limit: 300,
		Window: doubtDay, Cell: doubtDay, Tick: 1, Recovered: true,
		Entitlements: map[string]quantity.Units{"us": 100, "eu": 100, "ap": 100},
		Lending:      allocator.PPM, Borrowing: -1}
}

// tick lets 200 ms pass.
func (d *doubting) tick() Effects {
	d.now += Interval
	out := d.m.Step(d.now, Tick{Jitter: allocator.PPM})
	for _, c := range out.Calls {
		if c.Peer == "eu" || d.back {
			d.m.Step(d.now, Answered{ID: c.ID,
				Reply: Reply{From: c.Peer, Grants: make([]Grant, len(c.Message.Asks))}})
		} else {
			d.m.Step(d.now, Unanswered{ID: c.ID})
		}
	}
	return out
}

// loses tells the node of a loss a millisecond ago.
func (d *doubting) loses(all ...*Bucket) Effects {
	e := Lost{Generation: d.m.generation, Now: d.store()}
	for _, b := range all {
		e.Buckets = append(e.Buckets, LostBucket{Bucket: b, At: d.store() - 1000})
	}
	return d.m.Step(d.now, e)
}

// tells has a region, or for our own this node, say that it remembers no rows; the node's journal
// is new.
func (d *doubting) tells(region string, questions ...Question) (out Effects) {
	for _, q := range questions {
		answer := Testimonies{From: region, Node: "n1", ForGeneration: q.Generation}
		for _, one := range q.Buckets {
			answer.All = append(answer.All, Testimony{Bucket: one.Bucket, Now: d.store(),
				WholeSince: math.MaxInt64})
		}
		out.Restores = append(out.Restores, d.m.Step(d.now, Testified{answer}).Restores...)
	}
	return out
}

// questions returns what a region is asked, or our own journal.
func (e Effects) questions(region string) (all []Question) {
	for _, c := range e.Consults {
		if region == "us" {
			all = append(all, c.Question)
		}
	}
	for _, r := range e.Recalls {
		if r.Region == region {
			all = append(all, r.Question)
		}
	}
	return all
}

// restored has the store restore.
func (d *doubting) restored(all []Restore) {
	for _, r := range all {
		d.m.Step(d.now, Restored{Restore: r,
			Result: algorithms.Restored{Head: algorithms.Head{Status: algorithms.StatusOK,
				Now: d.store()}}})
	}
}

// loseAllButAp recovers buckets except for what ap, which cannot be reached, may have been lent.
func (d *doubting) loseAllButAp(all ...*Bucket) {
	d.Helper()
	out := d.loses(all...)
	d.tells("us", out.questions("us")...)
	d.tells("eu", out.questions("eu")...)
	restored := 0
	for range 20 {
		restores := d.tick().Restores
		d.restored(restores)
		restored += len(restores)
	}
	if restored != len(all) {
		d.Fatalf("%d of %d buckets restored", restored, len(all))
	}
}

// observed has the node see a bucket about which the store is in doubt.
func (d *doubting) observed(b *Bucket, lostAt quantity.StoreTime) Effects {
	state := algorithms.State{Cell: quantity.Cell(d.store() / doubtDay), Entitlement: 100,
		NextShare: 100, Doubt: lostAt}
	return d.m.Step(d.now, Observed{Bucket: b, Requests: allocator.Requests{Admitted: 1}, State: state, Now: d.store()})
}

// TestADoubtOutlivesADocument: another document ends a recovery. The next use of the bucket begins
// it again, so that ap is asked when it is back.
func TestADoubtOutlivesADocument(t *testing.T) {
	d := newDoubting(t)
	lostAt := d.store() - 1000
	d.loseAllButAp(d.bucket("b"))
	d.stand(7, "2-y")
	d.tick()
	if s := d.m.Stats(); s.Recovering != 0 || s.PartlyKnown != 0 {
		t.Errorf("under another document: %d recover, %d are partly known", s.Recovering,
			s.PartlyKnown)
	}
	out := d.observed(d.bucket("b"), lostAt)
	d.tells("us", out.questions("us")...)
	if s := d.m.Stats(); s.Recovering != 1 || s.PartlyKnown != 1 {
		t.Fatalf("the bucket was used: %d recover, %d are partly known", s.Recovering,
			s.PartlyKnown)
	}
	d.back = true
	var asked []Question
	for range 10 {
		asked = append(asked, d.tick().questions("ap")...)
	}
	if len(asked) == 0 {
		t.Fatal("ap is back and is not asked")
	}
	out = d.tells("ap", asked[0])
	if len(out.Restores) != 1 || !slices.Contains(out.Restores[0].KnownPeers, "ap") ||
		out.Restores[0].LostAt != lostAt {
		t.Errorf("ap has told, to restore is %+v", out.Restores)
	}
}

// TestWhoHasToldIsNotAskedAgain: eu has told all it knows, so it is not asked again while ap is
// away. It is asked when another bucket is lost.
func TestWhoHasToldIsNotAskedAgain(t *testing.T) {
	d := newDoubting(t)
	d.loseAllButAp(d.bucket("b"))
	for range 300 {
		if asked := d.tick().questions("eu"); len(asked) > 0 {
			t.Fatalf("eu is asked again: %+v", asked)
		}
	}
	if asked := d.loses(d.bucket("other")).questions("eu"); len(asked) != 1 ||
		len(asked[0].Buckets) != 1 || asked[0].Buckets[0].Bucket != "other" {
		t.Errorf("of the other bucket eu is asked %+v", asked)
	}
}

// TestDoubtsLeaveRoomForALoss: many buckets are in use of which an absent peer's part is unknown.
// Their recoveries leave room for the next lost bucket, because requests wait for that one.
func TestDoubtsLeaveRoomForALoss(t *testing.T) {
	d := newDoubting(t)
	lostAt := d.store() - 1000
	all := make([]*Bucket, MaxBuckets)
	for i := range all {
		all[i] = d.bucket(fmt.Sprintf("b%05d", i))
	}
	d.loseAllButAp(all...)
	if s := d.m.Stats(); s.Recovering == 0 || s.Recovering > MaxBuckets/2+1 {
		t.Errorf("%d recover", s.Recovering)
	}
	for _, b := range all {
		d.observed(b, lostAt)
	}
	if asked := d.loses(d.bucket("one more")).questions("us"); len(asked) == 0 {
		t.Errorf("%d recover, and one more is not", d.m.Stats().Recovering)
	}
}
