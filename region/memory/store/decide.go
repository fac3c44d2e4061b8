package store

import (
	"context"
	"regexp"
	"time"

	"github.com/quotad/quotad/algorithms"
)

// Decide runs decisions in order. Of the calls' fences only the epoch need be set. Those of one
// shard and epoch go into as few script calls as algorithms.Items allows; each is decided, or
// fails, for itself. All calls take one round trip, and another one if a script left decisions for
// it. The order can change in one case: if a server did not know the script at first, the script
// calls that it could not run follow behind the others.
func (s *Store) Decide(ctx context.Context, calls []algorithms.Decide) []Result[algorithms.Decided] {
	return s.decideWithin(ctx, calls, 1)
}

// DecidePatiently is Decide for a node that lacks processor time, and so reads replies late: it may
// take MaxTimeouts times the timeout.
func (s *Store) DecidePatiently(ctx context.Context,
	calls []algorithms.Decide) []Result[algorithms.Decided] {
	return s.decideWithin(ctx, calls, MaxTimeouts)
}

func (s *Store) decideWithin(ctx context.Context, calls []algorithms.Decide,
	timeouts int) []Result[algorithms.Decided] {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(timeouts)*s.timeout)
	defer cancel()
	results, left := make([]Result[algorithms.Decided], len(calls)), make([]int, len(calls))
	for i := range calls {
		left[i] = i
	}
	for len(left) > 0 {
		left = s.decide(ctx, calls, left, results)
	}
	return results
}

// decide makes a round trip with the chosen calls, and returns those that are left for another one.
// It settles at least one.
func (s *Store) decide(ctx context.Context, calls []algorithms.Decide, chosen []int,
	results []Result[algorithms.Decided]) (left []int) {
	places := map[Shard]int{} // of the Items that are filled, by shard
	var all []algorithms.Items
	var of [][]int // for each Items the places of its Decides in calls
	for _, i := range chosen {
		shard, err := shardOfDecide(&calls[i])
		if err != nil {
			results[i].Err = err
			continue
		}
		place, begun := places[shard]
		if !begun || !all[place].Add(calls[i]) {
			place = len(all)
			all, of, places[shard] = append(all, algorithms.Items{}), append(of, nil), place
			all[place].Add(calls[i])
		}
		of[place] = append(of[place], i)
	}
	for n, r := range runWithin[algorithms.Items, algorithms.ItemsDecided](ctx, s, all) {
		for k, i := range of[n] {
			if r.Err == nil && r.Value.Each[k].Status == algorithms.StatusLater {
				left = append(left, i)
			} else {
				results[i] = s.itemOf(r, k)
			}
		}
	}
	return left
}

// shardOfDecide is shardOf for a Decide.
func shardOfDecide(c *algorithms.Decide) (Shard, error) {
	if len(c.Buckets) == 1 && c.Once == "" {
		if shard := ShardOf(c.Buckets[0].Key); shard != "" {
			return shard, nil
		}
	}
	keys := make([]string, 0, len(c.Buckets)+1)
	for i := range c.Buckets {
		keys = append(keys, c.Buckets[i].Key)
	}
	if c.Once != "" {
		keys = append(keys, c.Once)
	}
	return shardOf(algorithms.DecideScript, keys)
}

// itemOf returns the result of one Decide of a call.
func (s *Store) itemOf(r Result[algorithms.ItemsDecided],
	item int) (one Result[algorithms.Decided]) {
	if one.Err = r.Err; item < len(r.Value.Each) {
		one.Value = r.Value.Each[item]
	}
	if r.Err != nil {
		return one
	}
	if one.Value.Status == algorithms.StatusUnreadable {
		failure := Failed(s.address.String(), "script "+algorithms.DecideScript.Name,
			refusal(lineOfScript.ReplaceAllString(one.Value.Why, "")))
		failure.Ran = false // the script charges an item when it has read all its buckets
		one.Err = failure
	} else {
		one.Err = refused(algorithms.DecideScript, one.Value.Head)
	}
	if one.Err != nil {
		s.heeds(one.Err)
	}
	return one
}

// lineOfScript is the place that the embedded Redis puts before an error that a script got.
var lineOfScript = regexp.MustCompile(`^\S*:\d+: `)
