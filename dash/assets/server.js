// Is this Redis fit for a queue, and are its streams in order.
import { h, fill } from './dom.js';
import { get } from './api.js';
import { num } from './format.js';

const tone = { ok: 'good', warn: 'warn', fail: 'bad', unknown: '' };
const rank = { fail: 0, warn: 1, unknown: 2, ok: 3 };

export default async function server(main, params, ctx) {
  ctx.title('Server');
  const { doctor } = await get('server', {}, ctx.signal);
  const findings = [...doctor].sort((a, b) => rank[a.level] - rank[b.level]);
  const count = (level) => doctor.filter((f) => f.level === level).length;
  const tile = (level, label) => h('div', { class: 'tile' + (count(level) ? { fail: ' bad', warn: ' warn' }[level] || '' : '') }, h('b', null, num(count(level))), h('span', null, label));
  fill(main, h('div', { class: 'head' }, h('h1', { class: 'grow' }, 'Server'), h('div', { class: 'actions' }, h('button', { class: 'btn', type: 'button', onclick: () => ctx.reload() }, 'Ask again'))),
    h('div', { class: 'tiles' }, tile('fail', 'must be mended'), tile('warn', 'worth a look'), tile('unknown', 'the server does not tell'), tile('ok', 'in order')),
    h('section', { class: 'card' }, h('header', null, h('h2', null, 'Doctor'), h('span', { class: 'muted' }, 'memory, persistence, version, and what is stored')),
      h('div', { class: 'scroll' }, h('table', { class: 'stack', 'aria-label': 'Findings' }, h('tbody', null, findings.map((f) => h('tr', { 'data-check': f.check },
        h('td', { class: 'level' }, h('span', { class: 'pill ' + (tone[f.level] || '') }, f.level)), h('td', { class: 'nowrap' }, h('b', null, f.check)),
        h('td', { class: 'wide' }, f.detail, f.fix ? h('p', { class: 'muted' }, f.fix) : null))))))));
}
