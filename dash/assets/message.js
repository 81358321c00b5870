// One message: what it is, where it is, and what it waits for.
import { h, fill, link } from './dom.js';
import { get } from './api.js';
import { bodyOf, bytes, due, num, plural, pretty, time } from './format.js';
import { copyButton, empty, errorBox, heading } from './ui.js';

/** bodyCard shows a body as indented JSON, as it is, or as bytes. */
export function bodyCard(m, ...actions) {
  const b = bodyOf(m);
  if (!b) return h('section', { class: 'card' }, h('header', null, h('h2', null, 'Body'), h('div', { class: 'right' }, actions)), empty('It has no body', 'An entry without a field named body cannot be handled: it is a dead letter at once.'));
  const neat = b.text !== undefined && !m.body_truncated ? pretty(b.text) : null;
  const pre = h('pre', { class: 'body', tabindex: 0, 'aria-label': 'Body' });
  const show = (raw) => { pre.textContent = b.text === undefined ? b.hex : raw || neat === null ? b.text : neat; };
  const toggle = h('label', { class: 'check' }, h('input', { type: 'checkbox', onchange: (e) => show(e.target.checked) }), 'as it is');
  show(false);
  return h('section', { class: 'card' }, h('header', null, h('h2', null, 'Body'), h('span', { class: 'muted' }, bytes(m.body_bytes)),
    m.body_truncated ? h('span', { class: 'pill warn' }, `the first ${bytes(b.bytes.length)}`) : null, m.redacted ? h('span', { class: 'pill warn' }, 'redacted') : null,
    b.text === undefined ? h('span', { class: 'pill info' }, 'binary') : null,
    h('div', { class: 'right' }, neat !== null ? toggle : null, copyButton(() => (b.text === undefined ? b.hex : b.text), 'the body'), actions)), h('div', { class: 'body' }, pre));
}

export function facts(m, ...more) {
  const one = (label, ...v) => [h('dt', null, label), h('dd', null, v)];
  return h('dl', null, one('Id', h('span', { class: 'mono' }, m.id), copyButton(m.id, 'the id')),
    m.entry_id !== m.id ? one('Lies at', h('span', { class: 'mono' }, m.entry_id), copyButton(m.entry_id, 'the entry id')) : null,
    one('Published', time(m.published_at)), m.due_at ? one('Due', time(m.due_at), ` (${due(m.due_at)})`) : null, more,
    m.lost ? one('Leases lost', num(m.lost)) : null,
    Object.entries(m.headers).map(([k, v]) => one(h('span', { class: 'mono' }, k), h('span', { class: 'mono' }, v))),
    (m.fields || []).map(([k, v]) => one(h('span', { class: 'mono' }, k), h('span', { class: 'mono' }, v.length > 500 ? v.slice(0, 500) + '…' : v))));
}

const tone = { waiting: 'info', delayed: 'info', 'in-flight': 'good', retrying: 'warn', dead: 'bad', done: 'good', unknown: '' };

async function whyOf(el, ctx, stream, group, id) {
  try {
    const w = await get('why', { stream, group, id, bytes: 0 }, ctx.signal);
    fill(el, h('div', { class: 'what' }, h('a', { href: link('group', { stream, group }) }, h('b', null, group)), ' ', h('span', { class: 'pill ' + (tone[w.state] || ''), 'data-state': group }, w.state), h('p', { class: 'muted' }, w.detail)),
      h('div', { class: 'muted nowrap' }, w.state === 'waiting' && w.ahead !== null ? `${plural(w.ahead, 'message', 'messages')} before it` : w.due_at ? due(w.due_at) : '',
        w.state === 'dead' && w.message ? h('a', { class: 'btn small', href: link('letter', { stream, group, id: w.message.entry_id }) }, 'Open the dead letter') : null));
  } catch (err) {
    if (err.name === 'AbortError') throw err;
    fill(el, h('b', null, group), errorBox(err));
  }
}

export default async function message(main, params, ctx) {
  const sg = { stream: params.get('stream') || '', group: params.get('group') || '' };
  const id = params.get('id') || '';
  const [m, depths] = await Promise.all([
    get('get', { stream: sg.stream, id, raw: 1 }, ctx.signal).catch((err) => { if (err.status === 404) return null; throw err; }),
    get('ls', { stream: sg.stream }, ctx.signal)]);
  const groups = depths.groups.map((d) => d.group).filter(Boolean);
  // The page is there with the answer of the group that it was come from; those of others follow.
  if (groups.includes(sg.group)) { groups.splice(groups.indexOf(sg.group), 1); groups.unshift(sg.group); }
  const asked = groups.slice(0, 20);
  const whys = asked.map((g) => h('div', { class: 'task' }, h('div', { class: 'what' }, h('b', null, g), h('p', { class: 'muted' }, 'Asking…'))));
  const ask = (i) => whyOf(whys[i], ctx, sg.stream, asked[i], m ? m.id : id);
  if (asked.length) await ask(0);
  const rest = async () => { for (let i = 1; i < asked.length; i++) await ask(i); }; // one by one: each may have much to count
  rest().catch(() => {}); // the page was left
  fill(main, heading(ctx, 'messages', sg, `Message ${id}`),
    h('section', { class: 'card' }, h('header', null, h('h2', null, 'Where it is'), h('span', { class: 'muted' }, groups.length > asked.length ? `the first ${asked.length} of ${num(groups.length)} groups` : 'for each group')),
      whys.length ? whys : empty('No group reads this stream', 'A message waits in the stream until a group is made; new groups begin at the oldest entry.')),
    m ? h('div', { class: 'cols' }, h('section', { class: 'card' }, h('header', null, h('h2', null, 'Message')), h('div', { class: 'body' }, facts(m, h('dt', null, 'Attempt'), h('dd', null, num(m.attempt))))), bodyCard(m))
      : h('section', { class: 'card' }, empty('It is not here any more', 'No place of this stream has a message with this id: every group is done with it, or it was purged, or it was never published. A search looks at 100,000 messages at most.')));
}
