// How numbers, times and bodies are written. Numbers are exact: nothing is rounded to "1.2k".
import { h } from './dom.js';

const grouped = new Intl.NumberFormat('en-GB');
export const num = (n) => (n === null || n === undefined ? '?' : grouped.format(n));
export const plural = (n, one, many) => `${num(n)} ${n === 1 ? one : many}`;

export function rate(v) {
  if (v === null || v === undefined || v < 0) return '–';
  return v >= 100 || v === 0 ? grouped.format(Math.round(v)) : v.toFixed(1);
}

/** span is a length of time for people, in two units at most. */
export function span(ms) {
  if (ms === null || ms === undefined) return '?';
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const s = Math.floor(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export function bytes(n) {
  if (n < 1024) return `${num(n)} B`;
  for (const [unit, size] of [['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]]) {
    if (n >= size) return `${(n / size).toFixed(1)} ${unit}`;
  }
  return '';
}

let utc = false;
try { utc = localStorage.getItem('xstreamq.zone') === 'utc'; } catch { /* no storage */ }
export const isUTC = () => utc;

export function setUTC(on) {
  utc = on;
  try { localStorage.setItem('xstreamq.zone', on ? 'utc' : 'local'); } catch { /* no storage */ }
  for (const el of document.querySelectorAll('time')) showTime(el);
}

const two = (n) => String(n).padStart(2, '0');
function wall(d, inUTC) {
  const get = (name) => d[(inUTC ? 'getUTC' : 'get') + name]();
  return `${get('FullYear')}-${two(get('Month') + 1)}-${two(get('Date'))} ${two(get('Hours'))}:${two(get('Minutes'))}:${two(get('Seconds'))}`;
}

export function clock(ms) {
  return wall(new Date(ms), utc).slice(11);
}

function zoneName(d) {
  const off = -d.getTimezoneOffset();
  return `UTC${off < 0 ? '−' : '+'}${two(Math.floor(Math.abs(off) / 60))}:${two(Math.abs(off) % 60)}`;
}

function showTime(el) {
  const d = new Date(el.dateTime);
  el.textContent = wall(d, utc) + (utc ? ' Z' : '');
  const away = Date.now() - d;
  el.title = `${wall(d, false)} ${zoneName(d)}\n${wall(d, true)} UTC\n${away >= 0 ? span(away) + ' ago' : 'in ' + span(-away)}`;
}

/** time is a <time> that follows the choice of zone. */
export function time(iso) {
  if (!iso) return h('span', { class: 'muted' }, '–');
  const el = h('time', { datetime: iso, class: 'nowrap' });
  showTime(el);
  return el;
}

/** due is how far a time is away. */
export function due(iso) {
  if (!iso) return '–';
  const ms = new Date(iso) - Date.now();
  return ms > 0 ? `in ${span(ms)}` : `due since ${span(-ms)}`;
}

/** bodyOf decodes a body: { bytes, text } where it is UTF-8, { bytes, hex } where it is not; null when there is none. */
export function bodyOf(m) {
  if (m.body_bytes < 0) return null;
  const raw = Uint8Array.from(atob(m.body_base64 || ''), (c) => c.charCodeAt(0));
  // A cut body may end inside a character: up to three bytes of it are left out.
  for (let cut = 0; cut <= (m.body_truncated ? 3 : 0); cut++) {
    try {
      const s = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(raw.subarray(0, raw.length - cut));
      // eslint-disable-next-line no-control-regex
      if (!/[\u0000-\u0008\u000e-\u001f]/.test(s)) return { bytes: raw, text: s };
      break;
    } catch { /* try a shorter one */ }
  }
  return { bytes: raw, hex: hex(raw) };
}

function hex(raw) {
  const lines = [];
  for (let i = 0; i < raw.length; i += 16) {
    const part = [...raw.subarray(i, i + 16)];
    const codes = part.map((b) => b.toString(16).padStart(2, '0')).join(' ').padEnd(47);
    lines.push(`${i.toString(16).padStart(6, '0')}  ${codes}  ${part.map((b) => (b > 31 && b < 127 ? String.fromCharCode(b) : '·')).join('')}`);
  }
  return lines.join('\n');
}

export function preview(m) {
  const b = bodyOf(m);
  if (!b) return h('span', { class: 'muted' }, 'no body');
  if (b.text === undefined) return h('span', { class: 'mono' }, `${bytes(m.body_bytes)} binary: ${[...b.bytes.subarray(0, 24)].map((x) => x.toString(16).padStart(2, '0')).join(' ')}`);
  return h('span', { class: 'mono' }, b.text + (m.body_truncated ? '…' : ''));
}

/** pretty indents JSON as text, so that no number and no escape changes; null when it is no JSON. */
export function pretty(s) {
  try { JSON.parse(s); } catch { return null; }
  let out = '', depth = 0, i = 0;
  const line = () => '\n' + '  '.repeat(depth);
  while (i < s.length) {
    const c = s[i];
    if (c === '"') {
      let j = i + 1;
      while (s[j] !== '"') j += s[j] === '\\' ? 2 : 1;
      out += s.slice(i, j + 1);
      i = j + 1;
    } else if (c === '{' || c === '[') {
      const rest = /^\s*[}\]]/.exec(s.slice(i + 1, i + 100));
      if (rest) { out += c + rest[0].trim(); i += 1 + rest[0].length; } else { depth++; out += c + line(); i++; }
    } else if (c === '}' || c === ']') {
      depth--; out += line() + c; i++;
    } else if (c === ',') { out += c + line(); i++;
    } else if (c === ':') { out += ': '; i++;
    } else if (/\s/.test(c)) { i++;
    } else { out += c; i++; }
  }
  return out;
}
