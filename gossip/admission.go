package gossip

import (
	"cmp"
	"errors"
	"time"
)

const (
	// defaultGroup bounds the members of one group if Config.MaxGroup does not.
	defaultGroup = 256
	// refillName is how often one more new name of a group is admitted, after as many as MaxGroup
	// came at once. memberlist keeps names for a while after their nodes are gone, so a bound on
	// members alone would not bound the names.
	refillName = time.Second
	// answerCounts is how long a member that answered is still admitted before others once it is
	// missing.
	answerCounts = 10 * time.Minute
	// complainEvery is the shortest time between two log lines about refused members.
	complainEvery = time.Minute
)

// These errors are logged. The refused node is not told: memberlist drops its message.
var (
	errGroupFull = errors.New("its group has as many members as it may have")
	errTooFast   = errors.New("new names of its group come too fast")
)

// admission decides which nodes may be members. Without keys anybody can invent members, so it
// bounds the members of one group, and how fast new names of a group come. Members that answered
// lately are exempt from both bounds. The roster's lock guards it.
type admission struct {
	admit    func(Member) (group string, err error)
	maxGroup int

	groupOf  map[string]string               // group by member
	count    map[string]int                  // members by group
	names    map[string]*names               // by group
	answered map[string]map[string]time.Time // when members answered, by group and name
	refused  uint64
	said     time.Time // when a refusal was last logged
}

// names is a token bucket of new names, full at first.
type names struct {
	left int
	at   time.Time
}

func newAdmission(c Config) *admission {
	a := &admission{admit: c.Admit, maxGroup: cmp.Or(c.MaxGroup, defaultGroup),
		groupOf: map[string]string{}, count: map[string]int{}, names: map[string]*names{},
		answered: map[string]map[string]time.Time{}}
	if a.admit == nil {
		a.admit = func(Member) (string, error) { return "", nil }
	}
	return a
}

// check returns why a node may not be a member, or nil if it may. known says that it is a member
// already.
func (a *admission) check(m Member, known bool, now time.Time) error {
	group, err := a.admit(m)
	if err != nil || known {
		return err
	}
	if at, ok := a.answered[group][m.Name]; ok && now.Sub(at) < answerCounts {
		return nil
	}
	if a.count[group] >= a.maxGroup {
		return errGroupFull
	}
	n := a.names[group]
	if n == nil {
		n = &names{left: a.maxGroup, at: now}
		a.names[group] = n
	}
	if gained := int(now.Sub(n.at) / refillName); gained > 0 {
		n.left, n.at = min(n.left+gained, a.maxGroup), now
	}
	if n.left == 0 {
		return errTooFast
	}
	n.left--
	return nil
}

// refuse counts a refusal, and reports whether to log it.
func (a *admission) refuse(now time.Time) bool {
	a.refused++
	if a.refused > 1 && now.Sub(a.said) < complainEvery {
		return false
	}
	a.said = now
	return true
}

// joined notes a member.
func (a *admission) joined(m Member) {
	a.left(m.Name)
	group, _ := a.admit(m)
	a.groupOf[m.Name] = group
	a.count[group]++
}

// left notes that a node is no longer a member.
func (a *admission) left(name string) {
	group, ok := a.groupOf[name]
	if !ok {
		return
	}
	delete(a.groupOf, name)
	if a.count[group]--; a.count[group] == 0 {
		delete(a.count, group)
	}
}

// heard notes that a member answered. It keeps as many members of each group as MaxGroup; the one
// that was silent longest makes room.
func (a *admission) heard(name string, now time.Time) {
	group, ok := a.groupOf[name]
	if !ok {
		return
	}
	all := a.answered[group]
	if all == nil {
		all = map[string]time.Time{}
		a.answered[group] = all
	}
	all[name] = now
	if len(all) <= a.maxGroup {
		return
	}
	oldest := name
	for n, at := range all {
		if at.Before(all[oldest]) {
			oldest = n
		}
	}
	delete(all, oldest)
}
