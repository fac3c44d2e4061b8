// A form that leads to the page of a bucket.

import { el } from './dom.js';
import { bucketHash } from './buckets.js';
import { limitName } from './rates.js';

export class Finder {
  #limits = [];
  #choice = el('select', { id: 'find-limit', on: { change: () => this.#ask() } });
  #key = el('div', { class: 'choose' });
  element = el(
    'form',
    { class: 'choose', on: { submit: (e) => this.#go(e) } },
    el('div', {}, el('label', { for: 'find-limit' }, 'Look at a bucket of'), this.#choice),
    this.#key,
    el('button', { type: 'submit' }, 'Show'),
  );

  update(limits) {
    const names = (all) => all.map(limitName).sort().join('\n');
    if (names(limits) === names(this.#limits) || this.element.contains(document.activeElement))
      return;
    this.#limits = limits;
    this.#choice.replaceChildren(
      ...limits.map((l) => el('option', { value: limitName(l) }, `${l.limit} (${l.domain})`)),
    );
    this.#ask();
  }

  #limit() {
    return this.#limits.find((l) => limitName(l) === this.#choice.value);
  }

  #ask() {
    this.#key.replaceChildren(
      ...(this.#limit()?.key ?? []).map((name, i) =>
        el(
          'div',
          {},
          el('label', { for: `find-${i}` }, name),
          el('input', { id: `find-${i}`, name, required: true, autocomplete: 'off' }),
        ),
      ),
    );
  }

  #go(event) {
    event.preventDefault();
    const limit = this.#limit();
    if (!limit) return;
    const descriptors = {};
    for (const input of this.#key.querySelectorAll('input')) descriptors[input.name] = input.value;
    location.hash = bucketHash({ limit: limit.limit, domain: limit.domain, descriptors });
  }
}
