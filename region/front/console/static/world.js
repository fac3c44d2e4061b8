// The first view: all regions at one glance.

import { el, show } from './dom.js';
import { Chart, colorOf } from './charts.js';
import { Matrix } from './matrix.js';
import { Table } from './table.js';
import { Tiles } from './tiles.js';
import { Finder } from './finder.js';
import { nodesTable, nodeRows, documentsTable, documentRows } from './nodes.js';
import { bucketHash, bucketName, bucketText, byDenials, byUse, falseDenials } from './buckets.js';
import { chosenLimit, limitsOf } from './history.js';
import { limitName, perRegion } from './rates.js';
import { list, number, percent, rate } from './format.js';

export class World {
  #history;
  #chosen = '';
  #tiles = new Tiles();
  #choice = el('select', { id: 'limit', on: { change: () => this.#choose() } });
  #finder = new Finder();
  #use = new Chart({ title: 'Used', tell: number });
  #shares = new Chart({ title: 'Shares', tell: number, stacked: true });
  #demand = new Chart({ title: 'Demand', tell: rate });
  #regions = regionsTable();
  #top = bucketsTable('Buckets with the most units admitted, over the last minute at most');
  #denied = bucketsTable('Buckets with the most units denied, over the last minute at most');
  #matrix = new Matrix();
  #nodes = nodesTable();
  #documents = documentsTable();
  #cuts;
  #play;
  #last = null;

  constructor(history, cuts, play) {
    this.#history = history;
    this.#cuts = cuts;
    this.#play = play;
    this.element = el(
      'div',
      {},
      el('h1', { tabindex: -1 }, 'All regions'),
      this.#tiles.element,
      section(
        'One limit over time',
        el(
          'div',
          { class: 'choose' },
          el('div', {}, el('label', { for: 'limit' }, 'Limit'), this.#choice),
        ),
        el(
          'div',
          { class: 'wide' },
          this.#use.element,
          this.#shares.element,
          this.#demand.element,
          this.#regions.element,
        ),
      ),
      section(
        'Buckets',
        el('div', { class: 'wide' }, this.#top.element, this.#denied.element),
        this.#finder.element,
      ),
      section('Links', this.#matrix.element, cuts.element, play.element),
      section('Nodes and documents', this.#nodes.element, el('br'), this.#documents.element),
    );
  }

  #choose() {
    this.#chosen = this.#choice.value;
    if (this.#last) this.update(this.#last);
  }

  update(o) {
    this.#last = o;
    const regions = this.#history.regions;
    const limit = chosenLimit(o, this.#chosen);
    this.#offer(limitsOf(o), limit);
    this.#finder.update(limitsOf(o));
    this.#tiles.update(o, this.#history);
    this.#draw(o, limit, regions);
    this.#regions.update(regionRows(this.#history.now, o, regions));
    this.#top.update(byUse(o.hottest));
    this.#denied.update(byDenials(o.hottest));
    this.#matrix.update(o, regions);
    this.#nodes.update(nodeRows(o));
    this.#documents.update(documentRows(o, regions));
    this.#cuts.update(o, regions);
    this.#play.update(o);
  }

  // #offer keeps the choice of limits, the busiest first, without disturbing who is choosing.
  #offer(limits, chosen) {
    const names = limits.map(limitName).join('\n');
    if (this.#choice.dataset.names !== names && document.activeElement !== this.#choice) {
      this.#choice.dataset.names = names;
      this.#choice.replaceChildren(
        ...limits.map((l) => el('option', { value: limitName(l) }, `${l.limit} (${l.domain})`)),
      );
    }
    if (chosen && document.activeElement !== this.#choice) this.#choice.value = limitName(chosen);
  }

  #draw(o, limit, regions) {
    const bucket = limit && this.#bucketOf(o, limit);
    for (const chart of [this.#use, this.#shares]) show(chart.element, bucket);
    show(this.#demand.element, limit);
    if (bucket) {
      const b = this.#history.ofBucket(bucketName(bucket), regions);
      const name = bucketText(bucket);
      this.#use.update(
        `Used worldwide of ${name}`,
        [
          { label: 'used', color: 'c0' },
          { label: 'limit', color: 'bad', dashed: true },
        ],
        b.at,
        [b.used, b.limit],
      );
      this.#shares.update(
        `Shares of ${name} by region`,
        [
          ...regions.map((r, i) => ({ label: r, color: colorOf(i) })),
          { label: 'limit', color: 'bad', dashed: true },
        ],
        b.at,
        [...b.shares, b.limit],
      );
    }
    if (limit) {
      const l = this.#history.ofLimit(limitName(limit));
      this.#demand.update(
        `Units a second of all buckets of ${limit.limit}`,
        [
          { label: 'asked for', color: 'c1', dashed: true },
          { label: 'admitted', color: 'c0' },
        ],
        l.at,
        [l.demand, l.admitted],
      );
    }
  }

  // #bucketOf returns the hottest bucket of a limit. The one shown before stays while it is hot, so
  // that the charts do not jump between two.
  #bucketOf(o, limit) {
    const all = byUse(o.hottest.filter((b) => limitName(b) === limitName(limit)));
    const shown = all.find((b) => bucketName(b) === this.#shown.get(limitName(limit))) ?? all[0];
    if (shown) this.#shown.set(limitName(limit), bucketName(shown));
    return shown;
  }

  #shown = new Map();
}

function section(title, ...children) {
  return el('section', {}, el('h2', {}, title), ...children);
}

function regionsTable() {
  return new Table({
    caption: 'Units a second of all limits',
    none: 'no region is known',
    name: (r) => r.region,
    columns: [
      { head: 'Region', row: true, text: (r) => r.region },
      { head: 'Admitted a second', num: true, text: (r) => rate(r.admitted) },
      { head: 'Denied a second', num: true, text: (r) => rate(r.denied), bad: (r) => r.denied > 0 },
      { head: 'Nodes ready', num: true, text: (r) => r.ready, bad: (r) => r.bad },
    ],
  });
}

function regionRows(now, o, regions) {
  const all = now.all ? perRegion(now.all, now.known) : new Map();
  return regions.map((region) => {
    const nodes = o.nodes.filter((n) => n.region === region);
    const ready = nodes.filter((n) => n.ready).length;
    const silent = o.silent.filter((name) => name.split('/')[0] === region).length;
    return {
      region,
      admitted: all.get(region)?.admitted,
      denied: all.get(region)?.denied,
      ready: `${ready} of ${nodes.length + silent}`,
      bad: ready < nodes.length + silent,
    };
  });
}

function bucketsTable(caption) {
  return new Table({
    caption,
    none: 'none',
    name: bucketName,
    columns: [
      { head: 'Bucket', row: true, text: bucketText, href: bucketHash },
      { head: 'Admitted', num: true, text: (b) => number(b.admitted_units) },
      {
        head: 'Denied',
        num: true,
        text: (b) => number(b.denied_units),
        bad: (b) => b.denied_units > 0,
      },
      { head: 'Used', num: true, text: (b) => `${number(b.used)} of ${number(b.limit_units)}` },
      { head: 'Of the limit', num: true, text: (b) => percent(b.used, b.limit_units) },
      { head: 'Left in other regions', text: elsewhere, bad: (b) => falseDenials(b) },
    ],
  });
}

// elsewhere says where a bucket is used up, and what is free in other regions.
function elsewhere(b) {
  const f = falseDenials(b);
  return f ? `${number(f.elsewhere)}, none in ${list(f.without)}` : '–';
}
