// Cutting this node off from other regions, where it was started for rehearsals of faults.

import { el, write, show } from './dom.js';
import { post } from './session.js';
import { list, span } from './format.js';

const lengths = [
  ['10s', '10 s'],
  ['30s', '30 s'],
  ['60s', '1 minute'],
];

export class Cuts {
  #until = new Map(); // when each cut ends that this page made, in milliseconds
  #rows = new Map();
  #said = el('p', { role: 'status' });
  #list = el('div');
  #title = el('h3', {}, 'Cut a link');
  #banner;
  #from = '';

  element = el('div', { hidden: true }, this.#title, this.#list, this.#said);

  constructor(banner) {
    this.#banner = banner;
    setInterval(() => this.#tick(), 500);
  }

  update(o, regions) {
    show(this.element, o.chaos);
    show(this.#banner, o.chaos);
    if (!o.chaos) return;
    this.#from = `${o.region}/${o.node}`;
    write(this.#title, `Cut ${this.#from} off from a region, to rehearse a partition`);
    for (const region of regions.filter((r) => r !== o.region && !this.#rows.has(r))) {
      this.#add(region);
    }
    this.#tick();
  }

  #add(region) {
    const button = (text, body) =>
      el(
        'button',
        {
          type: 'button',
          'aria-label': `${text} ${region}`,
          on: { click: () => this.#cut(region, body) },
        },
        text,
      );
    const row = el(
      'p',
      { class: 'cut', role: 'group', 'aria-label': region },
      el('strong', {}, region),
      ...lengths.map(([length, text]) => button(`Cut for ${text}`, { for: length })),
      button('Heal', { heal: true }),
    );
    this.#rows.set(region, row);
    this.#list.append(row);
  }

  async #cut(region, body) {
    try {
      const done = await post('/v1/cut', { region, ...body });
      if (done.for_ms > 0) this.#until.set(region, Date.now() + done.for_ms);
      else this.#until.delete(region);
      write(
        this.#said,
        done.for_ms > 0
          ? `${region} is cut off for ${span(done.for_ms)}.`
          : `${region} is no longer cut off.`,
      );
    } catch (err) {
      write(this.#said, `${region}: ${err.message}`);
    }
    this.#tick();
  }

  // #tick says in the banner that the node makes cuts, and which of them last.
  #tick() {
    const now = Date.now();
    for (const [region, until] of this.#until) if (until <= now) this.#until.delete(region);
    const lasting = [...this.#until].map(
      ([region, until]) => `${region} for ${span(Math.ceil((until - now) / 1000) * 1000)} more`,
    );
    this.#banner.classList.toggle('alert', lasting.length > 0);
    write(
      this.#banner,
      lasting.length > 0
        ? `${this.#from} is cut off from ${list(lasting)}.`
        : 'This node makes cuts on demand, to rehearse faults. It is not for production.',
    );
  }
}
