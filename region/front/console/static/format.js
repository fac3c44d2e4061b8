// Numbers and times for people.

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const small = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

// number returns a number of units: 1,234. Unknown is a dash.
export const number = (n) => (n === null || n === undefined ? '–' : whole.format(n));

// rate returns units a second: 9.9.
export function rate(n) {
  if (n === null || n === undefined) return '–';
  return n < 100 ? small.format(n) : whole.format(n);
}

// percent returns a part of a whole: 48 %.
export const percent = (part, of) => (of > 0 ? `${whole.format((100 * part) / of)} %` : '–');

// span returns milliseconds as a length of time: 81 ms, 2.5 s, 3 min, 5 h, 2 d.
export function span(ms) {
  if (ms === null || ms === undefined) return '–';
  const sizes = [
    [86_400_000, 'd'],
    [3_600_000, 'h'],
    [60_000, 'min'],
    [1000, 's'],
  ];
  const size = sizes.find(([length]) => Math.abs(ms) >= length * (length > 1000 ? 2 : 1));
  if (!size) return `${small.format(ms)} ms`;
  return `${small.format(ms / size[0])} ${size[1]}`;
}

// ago returns how long a time is past, by another time in milliseconds.
export function ago(text, now) {
  const ms = now - Date.parse(text);
  return ms < 1500 ? 'just now' : `${span(Math.round(ms / 1000) * 1000)} ago`;
}

// words returns a name of the API for people: over limit.
export const words = (name) => name.replaceAll('_', ' ');

// list joins names. None: a word for it.
export const list = (names, none = 'none') => (names.length > 0 ? names.join(', ') : none);
