// Tables that are told new rows each second. Rows keep their elements, so that the focus stays.

import { el, write } from './dom.js';

// Table makes a table. Each column has a head, and text(row); if it may also have href(row) for a
// link, bad(row) for a warning, num for numbers, and head of the row (row: true).
export class Table {
  #columns;
  #name;
  #rows = new Map();
  #body = el('tbody');
  #none;

  // name(row) tells rows apart, and none is what is said without any.
  constructor({ caption, columns, name, none }) {
    this.#columns = columns;
    this.#name = name;
    this.#none = el('tr', {}, el('td', { colspan: columns.length, class: 'none' }, none));
    const heads = columns.map((c) => el('th', { scope: 'col', class: c.num && 'num' }, c.head));
    this.element = el(
      'div',
      { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption },
      el(
        'table',
        {},
        el('caption', {}, el('span', {}, caption)),
        el('thead', {}, el('tr', {}, ...heads)),
        this.#body,
      ),
    );
  }

  update(rows) {
    const left = new Set(this.#rows.keys());
    rows.forEach((row, i) => {
      const name = this.#name(row);
      left.delete(name);
      if (!this.#rows.has(name)) this.#rows.set(name, this.#make());
      const made = this.#rows.get(name);
      this.#columns.forEach((c, at) => set(made.cells[at], c, row));
      if (this.#body.children[i] !== made.tr) {
        this.#body.insertBefore(made.tr, this.#body.children[i] ?? null);
      }
    });
    for (const name of left) {
      this.#rows.get(name).tr.remove();
      this.#rows.delete(name);
    }
    if (rows.length === 0) this.#body.append(this.#none);
    else this.#none.remove();
  }

  #make() {
    const cells = this.#columns.map((c) => {
      const inner = c.href ? el('a') : el('span');
      const cell = c.row
        ? el('th', { scope: 'row' }, inner)
        : el('td', { class: c.num && 'num' }, inner);
      return { cell, inner };
    });
    return { tr: el('tr', {}, ...cells.map((c) => c.cell)), cells };
  }
}

function set({ cell, inner }, column, row) {
  write(inner, column.text(row));
  const href = column.href?.(row);
  if (href && inner.getAttribute('href') !== href) inner.setAttribute('href', href);
  cell.classList.toggle('bad', Boolean(column.bad?.(row)));
}
