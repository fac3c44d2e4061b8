// The page of one bucket: why it is decided as it is, in every region.

import { el, write, show } from './dom.js';
import { draw } from './ledger.js';
import { Table } from './table.js';
import { balance, trades } from './trades.js';
import { bucketText, classes, explainPath, owes } from './buckets.js';
import { ago, list, number, percent, span, words } from './format.js';
import { get } from './session.js';

const every = 1000; // milliseconds between two questions

export class BucketPage {
  #bucket;
  #drawn = '';
  #asking = new AbortController();
  #timer;
  #sentence = el('p', { class: 'sentence' }, 'Asking all regions.');
  #facts = el('p');
  #fault = el('p', { class: 'bad', role: 'status', hidden: true });
  #picture = el('div');
  #regions = regionsTable();
  #loans = loansTable();

  constructor(bucket) {
    this.#bucket = bucket;
    this.element = el(
      'div',
      {},
      el('p', {}, el('a', { href: '#/' }, 'All regions')),
      el('h1', { tabindex: -1 }, bucketText(bucket)),
      this.#fault,
      this.#sentence,
      this.#facts,
      el('section', {}, el('h2', {}, 'Who lent what to whom now'), this.#picture),
      el('section', {}, this.#regions.element),
      el('section', {}, this.#loans.element),
    );
    this.#ask();
  }

  // end stops asking.
  end() {
    clearTimeout(this.#timer);
    this.#asking.abort();
  }

  async #ask() {
    try {
      this.#update(await get(explainPath(this.#bucket), this.#asking.signal));
      show(this.#fault, false);
    } catch (err) {
      if (this.#asking.signal.aborted) return;
      write(this.#fault, `What is below may be old: ${err.message}`);
      show(this.#fault, true);
    }
    if (!this.#asking.signal.aborted) this.#timer = setTimeout(() => this.#ask(), every);
  }

  #update(e) {
    const loans = trades(e.regions);
    write(this.#sentence, e.sentence);
    write(
      this.#facts,
      `Used worldwide: ${number(e.used)} of ${number(e.limit_units)} ` +
        `(${percent(e.used, e.limit_units)}) within ${span(e.window_ms)}, ` +
        `${words(e.algorithm ?? '')}${owes(e, ', charged always: ')}. ` +
        `Regions that did not answer: ${list(e.silent)}.`,
    );
    const silent = e.silent.map((region) => ({
      region,
      problem: 'did not answer',
      rights: [],
      degraded: [],
      remember_denial: [],
    }));
    const all = [...e.regions, ...silent];
    this.#regions.update(all.map((v) => ({ ...v, ...balance(v.region, loans) })));
    this.#loans.update(loans);
    const shown = JSON.stringify([all.map((v) => [v.region, v.share, v.used, v.problem]), loans]);
    if (shown !== this.#drawn) {
      this.#drawn = shown;
      this.#picture.replaceChildren(draw(all, loans));
    }
  }
}

function regionsTable() {
  const known = (f) => (v) => (v.problem ? '–' : f(v));
  return new Table({
    caption: 'The bucket in every region',
    none: 'no region answered',
    name: (v) => v.region,
    columns: [
      { head: 'Region', row: true, text: (v) => v.region },
      { head: 'Fixed split', num: true, text: known((v) => number(v.entitlement)) },
      { head: 'Borrowed', num: true, text: known((v) => number(v.borrowed)) },
      { head: 'Lent', num: true, text: known((v) => number(v.lent)) },
      { head: 'Share', num: true, text: known((v) => number(v.share)) },
      { head: 'Used', num: true, text: known((v) => number(v.used)) },
      {
        head: 'Free',
        num: true,
        text: known((v) => number(v.free) + classes(v) + owes(v, ', ')),
        bad: (v) => !v.problem && v.free <= 0,
      },
      {
        head: 'A request now',
        text: (v) => now(v),
        bad: (v) => v.problem || v.now?.allowed === false,
      },
      {
        head: 'Degraded towards',
        text: (v) => list(v.degraded.map(towards)),
        bad: (v) => v.degraded.length > 0,
      },
      {
        head: 'Closed until',
        text: (v) => (v.closed_until ? new Date(v.closed_until).toLocaleTimeString() : '–'),
        bad: (v) => v.closed_until,
      },
      { head: 'Last request', text: (v) => last(v) },
    ],
  });
}

const towards = (d) =>
  d.since
    ? `${d.region} since ${new Date(d.since).toLocaleTimeString()}`
    : `${d.region}, never heard`;

function now(v) {
  if (v.problem) return v.problem;
  if (!v.now) return '–';
  const retry = v.now.retry_after_ms ? `, again in ${span(v.now.retry_after_ms)}` : '';
  const remembered = v.remember_denial.length > 0 ? ', remembered' : '';
  return `${v.now.allowed ? 'admitted' : 'denied'}: ${words(v.now.reason)}${retry}${remembered}`;
}

function last(v) {
  if (!v.last) return 'none remembered';
  const by = v.last.from_memory ? ', from memory' : '';
  return (
    `${v.last.allowed ? 'admitted' : 'denied'} ${ago(v.last.at, Date.now())} by ${v.last.node}: ` +
    `${words(v.last.reason)}${by}`
  );
}

function loansTable() {
  return new Table({
    caption: 'Loans now',
    none: 'nothing is lent',
    name: (t) => `${t.from} ${t.to}`,
    columns: [
      { head: 'Lender', row: true, text: (t) => t.from },
      { head: 'Borrower', text: (t) => t.to },
      { head: 'Units', num: true, text: (t) => number(t.units) },
      { head: 'Arrived', num: true, text: (t) => number(t.arrived) },
    ],
  });
}
