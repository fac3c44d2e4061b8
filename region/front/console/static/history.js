// What the page keeps of the last ten minutes.

import { rates, known, regionsOf, sum, limitName } from './rates.js';
import { bucketName } from './buckets.js';

const kept = 600_000; // milliseconds
const maxPoints = 700; // more events than ten minutes have
const maxLimits = 20; // rates are kept of so many limits, the busiest of each event

// History has a point for each overview: its time in seconds, the rates since the last one, and the
// hottest buckets.
export class History {
  #last = null;
  points = [];
  regions = [];

  // add takes an overview, and returns whether it is new.
  add(o) {
    const at = Date.parse(o.at);
    if (this.#last && at <= Date.parse(this.#last.at)) return false;
    this.regions = [...new Set([...this.regions, ...regionsOf(o)])].sort();
    const point = {
      at: at / 1000,
      limits: new Map(),
      known: [],
      all: null,
      buckets: new Map(o.hottest.map((b) => [bucketName(b), b])),
    };
    if (this.#last) {
      const byLimit = rates(this.#last, o);
      point.known = known(this.#last, o);
      point.all = byLimit;
      point.limits = new Map(busiest(byLimit).slice(0, maxLimits));
      const before = this.points.at(-1);
      if (before) before.all = null; // of all limits only the last rates are kept
    }
    this.#last = o;
    this.points.push(point);
    while (this.points.length > maxPoints || point.at - this.points[0].at > kept / 1000) {
      this.points.shift();
    }
    return true;
  }

  // now is the last point.
  get now() {
    return this.points.at(-1);
  }

  // ofLimit returns for a limit the times and, at each, what all regions admitted and denied a
  // second: null where nothing is known.
  ofLimit(name) {
    const value = (p, of) => {
      const limit = p.limits.get(name);
      if (!limit) return p.known.length > 0 && p.limits.size < maxLimits ? 0 : null;
      return sum([...limit.values()], of);
    };
    return {
      at: this.points.map((p) => p.at),
      admitted: this.points.map((p) => value(p, (r) => r.admitted)),
      demand: this.points.map((p) => value(p, (r) => r.admitted + r.denied)),
    };
  }

  // ofBucket returns for a bucket the times and, at each, what is used of it worldwide, the limit,
  // and the share of each region; null where it was not among the hottest.
  ofBucket(name, regions) {
    const of = (f) =>
      this.points.map((p) => {
        const b = p.buckets.get(name);
        return b ? (f(b) ?? null) : null;
      });
    return {
      at: this.points.map((p) => p.at),
      used: of((b) => b.used),
      limit: of((b) => b.limit_units),
      shares: regions.map((r) => of((b) => b.parts.find((p) => p.region === r)?.share)),
    };
  }
}

// busiest returns the rates by limit, those with the most units first.
export function busiest(byLimit) {
  const units = (regions) => sum([...regions.values()], (r) => r.admitted + r.denied);
  return [...byLimit].sort((a, b) => units(b[1]) - units(a[1]) || a[0].localeCompare(b[0]));
}

// chosenLimit returns the limit that the page shows: the one that was chosen, while a node names
// it, or else the one with the most units since the nodes' start. Undefined: there is none.
export function chosenLimit(o, chosen) {
  const all = limitsOf(o);
  return all.find((l) => limitName(l) === chosen) ?? all[0];
}

// limitsOf returns the limits that nodes name, with what all admitted and denied, the busiest
// first.
export function limitsOf(o) {
  const all = new Map();
  for (const l of o.nodes.flatMap((n) => n.limits)) {
    const one = all.get(limitName(l)) ?? { ...l, admitted_units: 0, denied_units: 0 };
    one.admitted_units += l.admitted_units;
    one.denied_units += l.denied_units;
    all.set(limitName(l), one);
  }
  const units = (l) => l.admitted_units + l.denied_units;
  return [...all.values()].sort(
    (a, b) => units(b) - units(a) || limitName(a).localeCompare(limitName(b)),
  );
}
