// What lies in a stream, without consuming it.
import { h, fill, link } from './dom.js';
import { get } from './api.js';
import { preview, time } from './format.js';
import { copyButton, empty, heading, pager, table } from './ui.js';

export const headers = (m) => Object.entries(m.headers).map(([k, v]) => h('span', { class: 'pill', title: `${k}: ${v}` }, `${k}: ${v.length > 24 ? v.slice(0, 24) + '…' : v}`));

export default async function messages(main, params, ctx) {
  const sg = { stream: params.get('stream') || '', group: params.get('group') || '' };
  const newest = params.get('order') !== 'oldest';
  const page = await get('peek', { stream: sg.stream, newest: newest ? 1 : '', after: params.get('after'), limit: 50, raw: 1 }, ctx.signal);
  const id = h('input', { type: 'search', name: 'id', placeholder: 'Message id', 'aria-label': 'Open a message by its id', size: 26 });
  const find = h('form', { onsubmit: (e) => { e.preventDefault(); if (id.value.trim()) ctx.go(link('message', { ...sg, id: id.value.trim() })); } }, id);
  const order = h('select', { 'aria-label': 'Order', onchange: (e) => ctx.go({ ...sg, order: e.target.value }) },
    h('option', { value: 'newest', selected: newest }, 'newest first'), h('option', { value: 'oldest', selected: !newest }, 'oldest first'));
  const body = page.items.length ? table('Messages', ['Id', 'Published', 'Headers', 'Body'], h('tbody', null, page.items.map((m) => h('tr', { 'data-row': '' },
    h('td', { class: 'mono nowrap' }, h('a', { href: link('message', { ...sg, id: m.entry_id }) }, m.id), copyButton(m.id, 'the id')), h('td', { 'data-label': 'Published' }, time(m.published_at)),
    h('td', { class: 'clip half wide' }, headers(m)), h('td', { class: 'clip' }, preview(m))))))
    : empty(params.get('after') ? 'No more messages' : 'The stream is empty', 'What every group is done with is trimmed, unless the stream keeps history. Any Redis client publishes:',
      h('pre', null, `redis-cli XADD '{${sg.stream}}' '*' body '{"id":1}'`));
  fill(main, heading(ctx, 'messages', sg, sg.stream, find, order),
    h('section', { class: 'card' }, body, page.items.length || params.get('after') ? pager(ctx, params, page.next, 'Looking delivers nothing') : null));
}
