// Elements, made and changed without HTML text, which the page's policy and its safety ask for.

const svgSpace = 'http://www.w3.org/2000/svg';

// el makes an element. props are attributes, but for on, which has listeners by event.
export function el(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

// svg makes an element of a picture.
export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(svgSpace, tag), props, children);
}

function fill(made, { on = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined)
      made.setAttribute(name, value);
  }
  for (const [event, listener] of Object.entries(on)) made.addEventListener(event, listener);
  made.append(...children);
  return made;
}

// write sets the text of an element if it differs, so that what is selected or focused stays.
export function write(to, text) {
  if (to.textContent !== text) to.textContent = text;
}

// mark sets or removes a class.
export const mark = (on, name, whether) => on.classList.toggle(name, Boolean(whether));

// show makes an element visible or not.
export function show(what, whether) {
  what.hidden = !whether;
}
