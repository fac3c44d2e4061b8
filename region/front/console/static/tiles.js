// The numbers at the top.

import { el, write, mark } from './dom.js';
import { falseDenials, bucketText } from './buckets.js';
import { degraded } from './links.js';
import { perRegion, sum } from './rates.js';
import { list, number, rate } from './format.js';

export class Tiles {
  #tiles = new Map();
  element = el('dl', { class: 'tiles' });

  update(o, history) {
    const now = history.now;
    const all = now.all ? [...perRegion(now.all, now.known).values()] : null;
    const missing = history.regions.filter((r) => !now.known.includes(r));
    const without = all && missing.length > 0 ? `without ${list(missing)}` : 'all regions';
    this.#set('Admitted a second', all ? rate(sum(all, (r) => r.admitted)) : '–', without);
    const denied = all ? sum(all, (r) => r.denied) : null;
    this.#set('Denied a second', rate(denied), without, denied > 0);
    const doubtful = o.hottest.filter(falseDenials);
    this.#set(
      'Denied, though others have units',
      number(doubtful.length),
      doubtful.length > 0
        ? `buckets, such as ${bucketText(doubtful[0])}`
        : 'buckets of the hottest',
      doubtful.length > 0,
    );
    const cut = degraded(o);
    this.#set('Degraded links', number(cut.length), list(cut.slice(0, 2)), cut.length > 0);
    const ready = o.nodes.filter((n) => n.ready).length;
    const nodes = o.nodes.length + o.silent.length;
    this.#set(
      'Nodes ready',
      `${ready} of ${nodes}`,
      o.silent.length > 0 ? `silent: ${list(o.silent)}` : 'all answer',
      ready < nodes,
    );
  }

  #set(name, value, more, bad = false) {
    if (!this.#tiles.has(name)) {
      const [big, small] = [el('span'), el('small')];
      const box = el('div', {}, el('dt', {}, name), el('dd', {}, big, small));
      this.#tiles.set(name, { big, small, box });
      this.element.append(box);
    }
    const tile = this.#tiles.get(name);
    write(tile.big, value);
    write(tile.small, more);
    mark(tile.box, 'bad', bad);
  }
}
