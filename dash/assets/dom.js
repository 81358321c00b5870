// Elements are made here and nowhere from text: what comes from Redis can only become text, never markup.

const SVG = 'http://www.w3.org/2000/svg';
const svgTags = new Set(['svg', 'polyline', 'polygon', 'line', 'g', 'path', 'rect', 'title']);

/** h makes an element. Props: class, on* handlers, data-*, any attribute; a property where the element has one. */
export function h(tag, props, ...children) {
  const el = svgTags.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) el.addEventListener(name.slice(2), value);
    else if (name === 'value' || name === 'checked' || name === 'indeterminate') el[name] = value;
    else el.setAttribute(name, value === true ? '' : value);
  }
  el.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return el;
}

/** fill puts children in place of what an element has. */
export function fill(el, ...children) {
  el.replaceChildren(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return el;
}

/** text changes a text only when it is another: no needless work, no lost selection. */
export function text(el, value) {
  if (el.textContent !== value) el.textContent = value;
}

export const $ = (id) => document.getElementById(id);

/** link is the address of a page with what it is about; it works under any prefix. */
export function link(page, params) {
  const q = new URLSearchParams();
  if (page && page !== 'overview') q.set('page', page);
  for (const [k, v] of Object.entries(params || {})) if (v !== '' && v !== null && v !== undefined && v !== false) q.set(k, v);
  const s = q.toString();
  return '?' + s;
}
