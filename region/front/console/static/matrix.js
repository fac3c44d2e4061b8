// The links between regions as a table: who asks is the row, who answers the column.

import { el, write, mark } from './dom.js';
import { span } from './format.js';
import { links } from './links.js';

export class Matrix {
  #regions = '';
  #cells = new Map();
  #table = el('table', { class: 'matrix' });
  element = el(
    'div',
    { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Links between regions' },
    this.#table,
  );

  update(o, regions) {
    if (this.#regions !== regions.join()) {
      this.#regions = regions.join();
      this.#build(regions);
    }
    const known = links(o);
    for (const from of regions) {
      for (const to of regions.filter((r) => r !== from)) {
        const cell = this.#cells.get(`${from} ${to}`);
        const [text, more, bad] = described(known.get(from), to);
        write(cell.text, text);
        write(cell.more, more);
        mark(cell.td, 'bad', bad);
      }
    }
  }

  #build(regions) {
    this.#cells.clear();
    const head = el(
      'tr',
      {},
      el('th', { scope: 'col' }, 'from, to'),
      ...regions.map((r) => el('th', { scope: 'col' }, r)),
    );
    const rows = regions.map((from) =>
      el('tr', {}, el('th', { scope: 'row' }, from), ...regions.map((to) => this.#cell(from, to))),
    );
    this.#table.replaceChildren(
      el('caption', {}, el('span', {}, 'Links between regions: round trip, clock apart')),
      el('thead', {}, head),
      el('tbody', {}, ...rows),
    );
  }

  #cell(from, to) {
    if (from === to) return el('td', {}, '–');
    const [text, more] = [el('span'), el('small')];
    const td = el('td', {}, text, more);
    this.#cells.set(`${from} ${to}`, { td, text, more });
    return td;
  }
}

// described returns what a cell says of a link, what it adds, and whether it is bad.
function described(of, to) {
  const l = of?.get(to);
  if (!of) return ['no answer', 'nothing is known', true];
  if (!l) return ['–', '', false];
  if (!l.heard) return ['degraded', 'never heard', true];
  if (l.degraded) return ['degraded', `silent for ${span(Math.round(l.age / 1000) * 1000)}`, true];
  return [span(l.roundTrip), l.clock === null ? '' : `clock ${span(l.clock)}`, false];
}
