// Reads server-sent events out of text that comes in pieces. EventSource would do it, but it cannot
// send the header with a caller's token.

// maxEvent bounds what is kept of an event that does not end, in characters.
const maxEvent = 8 << 20;

// parser returns a function that takes the next piece of text and calls tell(name, data) for each
// event that is complete with it. It throws if an event is longer than maxEvent.
export function parser(tell) {
  let rest = '';
  let name = '';
  let data = [];
  let held = 0; // characters of data
  const line = (text) => {
    if (text === '') {
      if (data.length > 0) tell(name || 'message', data.join('\n'));
      name = '';
      data = [];
      held = 0;
      return;
    }
    const [field, value] = halves(text);
    if (field === 'event') name = value;
    if (field === 'data') {
      data.push(value);
      held += value.length;
    }
  };
  return (piece) => {
    rest += piece;
    // A \r at the end may be the first half of a \r\n.
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    lines.forEach(line);
    if (rest.length + held > maxEvent) throw new Error('an event is too long');
  };
}

// halves returns the field and the value of a line. A comment has the empty field.
function halves(text) {
  const colon = text.indexOf(':');
  if (colon < 0) return [text, ''];
  return [text.slice(0, colon), text.slice(colon + 1).replace(/^ /, '')];
}
