// Charts over the last ten minutes, with a legend that tells the numbers as text.

import uPlot from './uplot.js';
import { el, write } from './dom.js';

const height = 200; // as .plot has it
const least = 60; // seconds that a chart shows at the least

const dark = matchMedia('(prefers-color-scheme: dark)');
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Chart draws series over time. A series has a label, the name of a color (c0 to c7, ink or bad),
// and may be dashed. A stacked chart fills each series on top of those before it, but for the
// dashed ones, which are lines.
export class Chart {
  #title;
  #tell;
  #stacked;
  #plot = null;
  #drawn = '';
  #series = [];
  #data = [];
  #items = [];
  #holder = el('div', { class: 'plot', role: 'img' });
  #legend = el('ul', { class: 'legend' });

  // tell writes a number for the legend.
  constructor({ title, tell, stacked = false }) {
    this.#title = el('figcaption', {}, title);
    this.#tell = tell;
    this.#stacked = stacked;
    this.element = el('figure', {}, this.#title, this.#holder, this.#legend);
    new ResizeObserver(() => this.#plot?.setSize(this.#size())).observe(this.#holder);
    dark.addEventListener('change', () => this.#plot?.redraw(false));
  }

  // update draws the series over the times at (seconds). values has an array for each series.
  update(title, series, at, values) {
    write(this.#title, title);
    this.#series = series;
    this.#data = values;
    const data = [at, ...this.#heights()];
    const wanted = JSON.stringify(series);
    if (wanted !== this.#drawn) {
      this.#drawn = wanted;
      this.#start(data);
    } else {
      this.#plot.setData(data);
    }
    this.#say(at.length - 1);
  }

  // #heights returns where each line runs: on top of the fills before it, if it is stacked.
  #heights() {
    if (!this.#stacked) return this.#data;
    const under = new Array(this.#data[0]?.length ?? 0).fill(0);
    return this.#data.map((values, i) => {
      if (this.#series[i].dashed) return values;
      return values.map((v, at) => (v === null ? null : (under[at] += v)));
    });
  }

  #start(data) {
    this.#plot?.destroy();
    this.#items = this.#series.map((s) => el('li', { class: s.color }));
    this.#legend.replaceChildren(...this.#items);
    const filled = this.#series.map((s, i) => (s.dashed ? 0 : i + 1)).filter((i) => i > 0);
    this.#plot = new uPlot(
      {
        ...this.#size(),
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
        padding: [8, 8, 0, 0],
        scales: {
          x: { range: (_, from, to) => [Math.min(from, to - least), to] },
          y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] },
        },
        axes: [axis({ space: 80, values: (_, at) => at.map(clock) }), axis({ size: 52 })],
        series: [{}, ...this.#series.map((s) => this.#line(s))],
        bands: this.#stacked
          ? filled.slice(1).map((i) => ({
              series: [i, i - 1],
              fill: () => fade(this.#series[i - 1].color),
            }))
          : [],
        hooks: { setCursor: [(u) => this.#say(u.cursor.idx ?? data[0].length - 1)] },
      },
      data,
      this.#holder,
    );
  }

  #line(s) {
    const line = {
      stroke: () => color(`--${s.color}`),
      width: s.dashed ? 2 : 1.5,
      points: { show: false },
    };
    if (s.dashed) line.dash = [6, 4];
    if (this.#stacked && !s.dashed) line.fill = () => fade(s.color);
    return line;
  }

  #size() {
    return { width: Math.max(80, this.#holder.clientWidth), height };
  }

  // #say tells the numbers at one time in the legend, and the latest to who cannot see the chart.
  #say(at) {
    const texts = this.#series.map((s, i) => {
      const values = this.#data[i];
      return `${s.label}: ${this.#tell(values[at] ?? values.at(-1) ?? null)}`;
    });
    texts.forEach((text, i) => write(this.#items[i], text));
    this.#holder.setAttribute('aria-label', `${this.#title.textContent}. ${texts.join(', ')}.`);
  }
}

// clock writes seconds as a time of day.
const clock = (at) => new Date(at * 1000).toLocaleTimeString('en-GB');

function fade(name) {
  return `${color(`--${name}`)}55`;
}

function axis(more) {
  return {
    stroke: () => color('--dim'),
    grid: { stroke: () => `${color('--line')}88`, width: 1 },
    ticks: { stroke: () => color('--line'), width: 1 },
    font: '12px system-ui, sans-serif',
    ...more,
  };
}

// colorOf returns the name of the color of the region at a place in the order of all.
export const colorOf = (i) => `c${i % 8}`;
