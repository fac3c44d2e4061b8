// How regions see each other.

// links returns what the nodes of a region say of another one: the shortest round trip, whether one
// of them is degraded towards it, and the oldest answer.
//
//   links(overview) = Map { 'us-east' => Map { 'eu-west' => { roundTrip: 81, ... } } }
export function links(o) {
  const all = new Map();
  for (const n of o.nodes) {
    if (!all.has(n.region)) all.set(n.region, new Map());
    const to = all.get(n.region);
    for (const p of n.peers) {
      const l = to.get(p.region) ?? {
        heard: false,
        degraded: false,
        age: 0,
        roundTrip: null,
        clock: null,
      };
      l.heard ||= p.heard;
      l.degraded ||= p.degraded;
      if (p.heard) {
        l.age = Math.max(l.age, p.age_ms);
        l.roundTrip = Math.min(l.roundTrip ?? Infinity, p.round_trip_ms);
      }
      if (Math.abs(p.clock_apart_ms ?? 0) >= Math.abs(l.clock ?? 0))
        l.clock = p.clock_apart_ms ?? l.clock;
      to.set(p.region, l);
    }
  }
  return all;
}

// degraded lists the links that are, as "us-east to eu-west".
export function degraded(o) {
  return [...links(o)].flatMap(([from, to]) =>
    [...to].filter(([, l]) => l.degraded).map(([name]) => `${from} to ${name}`),
  );
}
