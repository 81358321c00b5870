// One dead letter: why it died, and how it goes on.
import { h, fill, link } from './dom.js';
import { get, post } from './api.js';
import { bodyOf, num, time } from './format.js';
import { confirm, copyButton, field, heading, tell, toast } from './ui.js';
import { bodyCard, facts } from './message.js';
import { purgeOne, reasons, redriveOne } from './dead.js';

export default async function letter(main, params, ctx) {
  const sg = { stream: params.get('stream') || '', group: params.get('group') || '' };
  const id = params.get('id') || '';
  const m = await get('dlq/show', { ...sg, id, raw: 1 }, ctx.signal);
  const back = () => ctx.go(link('dead', sg));
  const b = bodyOf(m);
  const editable = !m.redacted && !m.body_truncated && !(b && b.text === undefined);

  async function edit() {
    const a = await confirm({ title: 'Edit and redrive', action: 'Redrive with this body', wide: true,
      body: h('p', { class: 'muted' }, 'The message keeps its id and its headers, and gets fresh attempts. The old body is not kept.'),
      fields: field('Body', h('textarea', { name: 'body', spellcheck: 'false', value: b ? b.text : '' })) });
    if (!a) return;
    if (await tell(() => post('dlq/edit', { ...sg, id, body_text: a.body }))) { toast('Redriven with the new body'); back(); }
  }
  async function toStream() {
    if (!await confirm({ title: 'Publish it anew?', action: 'Publish to the stream', body: h('p', null, 'Every group of the stream gets it as a new message with a new id. To have only this group try again, use Redrive.') })) return;
    if (await tell(() => post('dlq/redrive', { ...sg, ids: [id], to_stream: true }))) { toast('Published anew'); back(); }
  }
  const cannot = m.redacted ? 'The body is redacted here' : m.body_truncated ? 'The body is too long to edit here' : 'A binary body cannot be edited here';
  fill(main, heading(ctx, 'dead', sg, 'Dead letter', ctx.canWrite ? [
    h('button', { class: 'btn main', type: 'button', 'data-redrive': id, onclick: async () => { if (await redriveOne(sg, id)) back(); } }, 'Redrive'),
    h('button', { class: 'btn', type: 'button', 'data-edit': '', disabled: !editable, title: editable ? null : cannot, onclick: edit }, 'Edit and redrive'),
    h('button', { class: 'btn', type: 'button', onclick: toStream }, 'Publish to all groups'),
    h('button', { class: 'btn danger', type: 'button', 'data-purge': id, onclick: async () => { if (await purgeOne(sg, id)) back(); } }, 'Purge')] : h('span', { class: 'pill' }, 'read-only')),
  h('section', { class: 'card' }, h('header', null, h('h2', null, 'Why it died'), h('span', { class: 'pill bad' }, m.reason || 'no reason given'), h('span', { class: 'muted' }, reasons[m.reason] || '')),
    h('div', { class: 'body' }, m.error ? h('pre', null, m.error) : h('p', { class: 'muted' }, 'No error was recorded.'))),
  h('div', { class: 'cols' }, h('section', { class: 'card' }, h('header', null, h('h2', null, 'Message'), h('div', { class: 'right' }, copyButton(location.href, 'a link to this page', 'copy link'))),
    h('div', { class: 'body' }, facts(m, h('dt', null, 'Died'), h('dd', null, time(m.dead_at)), h('dt', null, 'Failed attempts'), h('dd', null, num(m.attempts))))),
  bodyCard(m)));
  if (params.get('edit') && ctx.canWrite && editable) {
    history.replaceState(null, '', link('letter', { ...sg, id }));
    setTimeout(edit);
  }
}
