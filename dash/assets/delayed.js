// What was published for later.
import { h, fill, link } from './dom.js';
import { get, post } from './api.js';
import { due, preview, time } from './format.js';
import { confirm, copyButton, empty, heading, pager, table, tell, toast } from './ui.js';
import { headers } from './messages.js';

export default async function delayed(main, params, ctx) {
  const sg = { stream: params.get('stream') || '', group: params.get('group') || '' };
  const latest = params.get('order') === 'latest';
  const page = await get('delayed', { stream: sg.stream, newest: latest ? 1 : '', after: params.get('after'), limit: 50, raw: 1 }, ctx.signal);
  const cancel = async (m) => {
    if (!await confirm({ title: 'Cancel this message?', action: 'Cancel the message', danger: true,
      body: h('p', null, 'It is deleted before it is due, for every group, and cannot be brought back: ', h('span', { class: 'mono' }, m.id)) })) return;
    if (await tell(() => post('delayed/cancel', { stream: sg.stream, id: m.id }))) { toast('Cancelled'); ctx.reload(); }
  };
  const order = h('select', { 'aria-label': 'Order', onchange: (e) => ctx.go({ ...sg, order: e.target.value }) },
    h('option', { value: '', selected: !latest }, 'soonest first'), h('option', { value: 'latest', selected: latest }, 'latest first'));
  const body = page.items.length ? table('Delayed messages', ['Id', 'Due', 'Due at', 'Headers', 'Body', h('th', { scope: 'col' }, h('span', { class: 'skip' }, 'Actions'))], h('tbody', null, page.items.map((m) => h('tr', { 'data-row': '' },
    h('td', { class: 'mono nowrap' }, h('a', { href: link('message', { ...sg, id: m.id }) }, m.id), copyButton(m.id, 'the id')),
    h('td', { class: 'nowrap', 'data-label': 'Due' }, due(m.due_at)), h('td', { 'data-label': 'Due at' }, time(m.due_at)),
    h('td', { class: 'clip half wide' }, headers(m)), h('td', { class: 'clip' }, preview(m)),
    h('td', { class: 'act' }, ctx.canWrite ? h('button', { class: 'btn small danger', type: 'button', 'data-cancel': m.id, onclick: () => cancel(m) }, 'Cancel') : null)))))
    : empty('Nothing is delayed', 'A message published with a delay, or for a time, waits here until it is due:', h('pre', null, `xstreamq publish ${sg.stream} '{"id":1}' --delay 5m`));
  fill(main, heading(ctx, 'delayed', sg, 'Delayed', order),
    h('section', { class: 'card' }, body, page.items.length || params.get('after') ? pager(ctx, params, page.next, 'The same for every group of the stream') : null));
}
