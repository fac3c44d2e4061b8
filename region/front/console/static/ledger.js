// The ledger of a bucket as a picture: each region with its share and what it used of it, and an
// arrow for what a region lent to another.

import { svg } from './dom.js';
import { colorOf } from './charts.js';
import { number } from './format.js';

const [boxWidth, boxHeight] = [150, 78];
const margin = 5;
const maxShown = 10; // regions; the table has all

// draw returns the picture of regions (as explained) and loans (as trades returns them).
export function draw(regions, loans) {
  const shown = regions.slice(0, maxShown);
  const places = new Map(shown.map((v, i) => [v.region, place(i, shown.length)]));
  const [left, right] = ends(
    [...places.values()].map(([x]) => x),
    boxWidth,
  );
  const [top, bottom] = ends(
    [...places.values()].map(([, y]) => y),
    boxHeight,
  );
  const most = Math.max(1, ...shown.map((v) => Math.max(v.share, v.entitlement, v.used)));
  const visible = loans.filter((t) => places.has(t.from) && places.has(t.to));
  return svg(
    'svg',
    {
      class: 'ledger',
      role: 'img',
      viewBox: `${left} ${top} ${right - left} ${bottom - top}`,
      'aria-label': told(shown, visible),
    },
    ...visible.map((t) => arrow(places.get(t.from), places.get(t.to), t)),
    ...shown.map((v, i) => box(v, places.get(v.region), most, colorOf(i))),
    ...visible.map((t) => label(places.get(t.from), places.get(t.to), t)),
  );
}

// told says in words what the picture shows.
function told(regions, loans) {
  const of = regions.map((v) =>
    v.problem ? `${v.region}: not known` : `${v.region} holds ${v.share} and used ${v.used}`,
  );
  const lent = loans.map((t) => `${t.from} lent ${t.units} to ${t.to}`);
  return [...of, ...(lent.length > 0 ? lent : ['nothing is lent'])].join('; ');
}

// place puts regions on an ellipse around 0, the first on top. It is wide enough for n of them.
function place(i, n) {
  if (n === 1) return [0, 0];
  const angle = (2 * Math.PI * i) / n - Math.PI / 2;
  const wide = n < 5 ? 170 : 240;
  return [Math.cos(angle) * wide, Math.sin(angle) * 160];
}

// ends returns from where to where boxes reach that have these middles, with room for arrows.
function ends(middles, size) {
  const room = size / 2 + margin + 20;
  return [Math.min(...middles) - room, Math.max(...middles) + room];
}

// box draws a region: its name, its share, and a bar of what it used of it.
function box(v, [x, y], most, color) {
  const [left, top] = [x - boxWidth / 2, y - boxHeight / 2];
  const long = (units) => Math.max(0, Math.min(1, units / most)) * (boxWidth - 20);
  const bar = (units, name) =>
    svg('rect', { class: name, x: left + 10, y: top + 30, height: 12, width: long(units) });
  const text = (dy, words, name) => svg('text', { x, y: top + dy, class: name }, words);
  if (v.problem) {
    return svg(
      'g',
      { class: color },
      svg('rect', { class: 'box', x: left, y: top, rx: 8, width: boxWidth, height: boxHeight }),
      text(20, v.region),
      text(56, 'not known', 'dim'),
    );
  }
  return svg(
    'g',
    { class: color },
    svg('rect', { class: 'box', x: left, y: top, rx: 8, width: boxWidth, height: boxHeight }),
    text(20, v.region),
    bar(v.share, 'held'),
    bar(v.used, 'used'),
    svg('rect', {
      class: 'bar',
      x: left + 10,
      y: top + 30,
      height: 12,
      width: long(v.entitlement),
    }),
    text(58, `${number(v.used)} of ${number(v.share)} used`),
    text(72, `fixed split ${number(v.entitlement)}`, 'dim'),
  );
}

// line returns the ends and the middle of the arrow between two boxes. Arrows there and back bend
// to different sides.
function line([x1, y1], [x2, y2]) {
  const [dx, dy] = [x2 - x1, y2 - y1];
  const middle = [(x1 + x2) / 2 + dy * 0.12, (y1 + y2) / 2 - dx * 0.12];
  return { from: edge([x1, y1], middle), to: edge([x2, y2], middle), middle };
}

// edge returns where the way from a box to a point leaves the box, a little outside.
function edge([x, y], [px, py]) {
  const [dx, dy] = [px - x, py - y];
  const way = Math.min(
    (boxWidth / 2 + 8) / Math.abs(dx || 1e-9),
    (boxHeight / 2 + 8) / Math.abs(dy || 1e-9),
  );
  return [x + dx * Math.min(way, 1), y + dy * Math.min(way, 1)];
}

function arrow(a, b, loan) {
  const { from, to, middle } = line(a, b);
  const thick = 1.5 + Math.min(6, Math.log10(1 + loan.units) * 2);
  const angle = (Math.atan2(to[1] - middle[1], to[0] - middle[0]) * 180) / Math.PI;
  return svg(
    'g',
    {},
    svg('path', {
      class: 'loan',
      'stroke-width': thick,
      d: `M${from.join(' ')} Q${middle.join(' ')} ${to.join(' ')}`,
    }),
    svg('path', {
      class: 'tip',
      d: 'M3 0 L-11 -7 L-11 7 Z',
      transform: `translate(${to.join(' ')}) rotate(${angle})`,
    }),
  );
}

function label(a, b, loan) {
  const { from, to, middle } = line(a, b);
  const [x, y] = [0, 1].map((i) => 0.25 * from[i] + 0.5 * middle[i] + 0.25 * to[i]);
  return svg('text', { class: 'units', x, y: y + 4 }, number(loan.units));
}
