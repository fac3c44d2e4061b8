// Load and killed stores, where the node can make them: in quotad dev.

import { el, write, show } from './dom.js';
import { post } from './session.js';

const steps = [0, 20, 50, 100, 200];

export class Play {
  #rows = new Map();
  #said = el('p', { role: 'status' });
  #list = el('div');

  element = el(
    'div',
    { hidden: true },
    el('h3', {}, 'Load, and stores that die'),
    this.#list,
    this.#said,
  );

  update(o) {
    show(this.element, o.loads);
    for (const [region, load] of Object.entries(o.loads ?? {})) {
      if (!this.#rows.has(region)) this.#add(region);
      for (const [step, button] of this.#rows.get(region)) {
        button.setAttribute('aria-pressed', String(step === load));
      }
    }
  }

  #add(region) {
    const buttons = new Map(
      steps.map((step) => [
        step,
        this.#button(
          `${step}/s`,
          `${step} requests a second to ${region}`,
          { region, load: step },
          step > 0 ? `${region} gets ${step} requests a second.` : `${region} gets no load.`,
        ),
      ]),
    );
    this.#rows.set(region, buttons);
    this.#list.append(
      el(
        'p',
        { class: 'cut', role: 'group', 'aria-label': region },
        el('strong', {}, region),
        ...buttons.values(),
        this.#button(
          'Kill its Redis for 5 s',
          `Kill the Redis of ${region} for 5 seconds`,
          { region, kill_store: '5s' },
          `The Redis of ${region} is gone for 5 s, and its data for good.`,
        ),
      ),
    );
  }

  #button(text, label, body, said) {
    return el(
      'button',
      {
        type: 'button',
        'aria-label': label,
        on: {
          click: async () => {
            try {
              await post('/v1/rehearse', body);
              write(this.#said, said);
            } catch (err) {
              write(this.#said, `${body.region}: ${err.message}`);
            }
          },
        },
      },
      text,
    );
  }
}
