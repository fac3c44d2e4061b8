// What the nodes tell of themselves: tables of nodes and of documents.

import { nodeName } from './rates.js';
import { Table } from './table.js';
import { list, number, span, words } from './format.js';

// nodesTable has all nodes, those that do not answer first.
export function nodesTable() {
  return new Table({
    caption: 'Nodes',
    none: 'no node is known',
    name: (n) => n.name,
    columns: [
      { head: 'Node', row: true, text: (n) => n.name },
      { head: 'State', text: (n) => state(n), bad: (n) => n.silent || !n.ready },
      {
        head: 'Store',
        text: (n) => (n.silent ? '–' : storeOf(n.store)),
        bad: (n) => !n.silent && storeBad(n.store),
      },
      {
        head: 'Journal',
        text: (n) => (n.silent ? '–' : words(n.journal)),
        bad: (n) => n.journal === 'failed',
      },
      {
        head: 'Recovering',
        num: true,
        text: (n) => number(n.recovering),
        bad: (n) => n.recovering > 0,
      },
      {
        head: 'Not charged yet',
        num: true,
        text: (n) => number(n.local_unbooked),
        bad: (n) => n.local_unbooked > 0,
      },
      {
        head: 'Up',
        num: true,
        text: (n) =>
          n.silent
            ? '–'
            : span(Math.floor((Date.parse(n.at) - Date.parse(n.started)) / 1000) * 1000),
      },
      { head: 'Version', text: (n) => n.version ?? '–' },
    ],
  });
}

// nodeRows returns the rows of nodesTable.
export function nodeRows(o) {
  const silent = o.silent.map((name) => ({ name, silent: true }));
  return [...silent, ...o.nodes.map((n) => ({ ...n, name: nodeName(n) }))];
}

function state(n) {
  if (n.silent) return 'does not answer';
  return n.ready ? 'ready' : `not ready: ${n.not_ready ?? ''}`;
}

const storeBad = (s) =>
  s.out_of_reach > 0 || s.refusing.length > 0 || Boolean(s.stopped) || s.rivals > 0;

function storeOf(s) {
  if (s.stopped) return `stopped: ${s.stopped}`;
  if (s.out_of_reach > 0) return `out of reach (${s.out_of_reach})`;
  if (s.refusing.length > 0) return `refuses: ${s.refusing.map(words).join(', ')}`;
  if (s.rivals > 0) return `${s.rivals} nodes with another store`;
  if (!(s.losses > 0)) return s.kind;
  return `${s.kind}, data lost ${s.losses === 1 ? 'once' : `${s.losses} times`}`;
}

// documentsTable has the documents in force by region.
export function documentsTable() {
  return new Table({
    caption: 'Documents in force',
    none: 'no region is known',
    name: (r) => r.region,
    columns: [
      { head: 'Region', row: true, text: (r) => r.region },
      {
        head: 'In force',
        text: (r) => list(r.epochs, 'not known'),
        bad: (r) => r.epochs.length !== 1,
      },
      { head: 'Open', text: (r) => list(r.open) },
      { head: 'Waits for', text: (r) => list(r.waiting), bad: (r) => r.waiting.length > 0 },
      { head: 'Refused file', text: (r) => list(r.refused), bad: (r) => r.refused.length > 0 },
    ],
  });
}

// documentRows returns the rows of documentsTable.
export function documentRows(o, regions) {
  return regions.map((region) => {
    const nodes = o.nodes.filter((n) => n.region === region);
    const all = (of) => [...new Set(nodes.flatMap(of))].sort();
    return {
      region,
      epochs: all((n) => n.epoch),
      open: all((n) => n.documents),
      waiting: all((n) => n.waiting),
      refused: all((n) => n.file_refused ?? []),
    };
  });
}
