// Units a second out of two overviews, and what is kept of them.

// sum adds up f of each.
export const sum = (all, f = (x) => x) => all.reduce((total, x) => total + f(x), 0);

// nameOf names a node or a limit: names of limits are of a domain.
export const nodeName = (n) => `${n.region}/${n.node}`;
export const limitName = (l) => `${l.domain} ${l.limit}`;

// rates returns what was admitted and denied a second between two overviews: by limit, by region.
// A node counts from its start, so of one that is new or was started again nothing is known yet.
// A region of which no node is known in both overviews is not in the answer.
//
//   rates(before, now) = Map { 'api account' => Map { 'us-east' => { admitted: 9, denied: 0 } } }
export function rates(before, now) {
  const earlier = new Map(before.nodes.map((n) => [nodeName(n), n]));
  const all = new Map();
  for (const n of now.nodes) {
    const old = earlier.get(nodeName(n));
    const seconds = old ? (Date.parse(n.at) - Date.parse(old.at)) / 1000 : 0;
    if (!old || old.started !== n.started || seconds <= 0) continue;
    const was = new Map(old.limits.map((l) => [limitName(l), l]));
    for (const l of n.limits) {
      const name = limitName(l);
      const from = was.get(name) ?? { admitted_units: 0, denied_units: 0 };
      if (!all.has(name)) all.set(name, new Map());
      const regions = all.get(name);
      const r = regions.get(n.region) ?? { admitted: 0, denied: 0 };
      r.admitted += Math.max(0, l.admitted_units - from.admitted_units) / seconds;
      r.denied += Math.max(0, l.denied_units - from.denied_units) / seconds;
      regions.set(n.region, r);
    }
  }
  return all;
}

// known returns the regions of which both overviews have a node, so that their rates are known.
export function known(before, now) {
  const earlier = new Map(before.nodes.map((n) => [nodeName(n), n.started]));
  return [
    ...new Set(
      now.nodes.filter((n) => earlier.get(nodeName(n)) === n.started).map((n) => n.region),
    ),
  ].sort();
}

// perRegion adds up the rates of limits by region. Regions that answer and admit nothing are at 0.
export function perRegion(byLimit, regions) {
  const all = new Map(regions.map((r) => [r, { admitted: 0, denied: 0 }]));
  for (const limit of byLimit.values()) {
    for (const [region, r] of limit) {
      const to = all.get(region) ?? { admitted: 0, denied: 0 };
      all.set(region, { admitted: to.admitted + r.admitted, denied: to.denied + r.denied });
    }
  }
  return all;
}

// regionsOf returns the names of all regions of which an overview knows, in order.
export function regionsOf(o) {
  const silent = o.silent.map((name) => name.split('/')[0]);
  const seen = o.nodes.flatMap((n) => [n.region, ...n.peers.map((p) => p.region)]);
  return [...new Set([...seen, ...silent])].sort();
}
