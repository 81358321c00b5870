// Is this Redis fit for a queue: its figures, and what the doctor makes of them and of the streams.
import { h, fill } from './dom.js';
import { get } from './api.js';
import { bytes, num, plural, span, time } from './format.js';

const tone = { ok: 'good', warn: 'warn', fail: 'bad', unknown: '' };
const rank = { fail: 0, warn: 1, unknown: 2, ok: 3 };
const untold = h.bind(null, 'span', { class: 'muted' }, 'not told');
const or = (v, show) => (v === null || v === '' ? untold() : show(v));
const fact = (label, key, ...v) => [h('dt', null, label), h('dd', { 'data-figure': key }, v)];

function memory(s) {
  const share = s.memory_most_bytes ? s.memory_bytes / s.memory_most_bytes : 0;
  return h('section', { class: 'card' }, h('header', null, h('h2', null, 'Memory')), h('div', { class: 'body' },
    s.memory_most_bytes ? h('progress', { class: share >= 0.95 ? 'bad' : share >= 0.8 ? 'warn' : null, max: 1, value: share, 'aria-label': 'Memory used' }) : null,
    h('dl', null,
      fact('Used', 'memory', or(s.memory_bytes, bytes), s.memory_most_bytes ? ` (${Math.round(100 * share)} %)` : ''),
      fact('Most allowed', 'memory-most', or(s.memory_most_bytes, (n) => (n ? bytes(n) : h('span', { class: 'warn-text' }, 'no limit')))),
      fact('Highest so far', 'memory-peak', or(s.memory_peak_bytes, bytes)),
      fact('When it is full', 'eviction', or(s.eviction, (p) => (p === 'noeviction' ? 'publishing fails, nothing is lost' : 'keys are evicted')), s.eviction ? h('span', { class: 'muted mono' }, ` ${s.eviction}`) : ''))));
}

function persistence(s) {
  const fsync = { always: 'every write', everysec: 'every second', no: 'when the system likes' };
  return h('section', { class: 'card' }, h('header', null, h('h2', null, 'Persistence')), h('div', { class: 'body' }, h('dl', null,
    fact('Append-only file', 'aof', or(s.aof, (on) => (on ? 'on' : h('span', { class: 'warn-text' }, 'off')))),
    s.aof === false ? null : fact('Synced', 'fsync', or(s.fsync, (v) => fsync[v] || v)),
    fact('Snapshots', 'save', s.save === '' ? 'off' : or(s.save, (v) => h('span', { class: 'mono' }, v))),
    fact('Last snapshot', 'saved', s.saved_at ? time(s.saved_at) : s.changes_since_save === null ? untold() : 'none yet'),
    fact('Changed since', 'unsaved', or(s.changes_since_save, (n) => plural(n, 'write', 'writes'))),
    fact('Last error', 'error', s.errors.length ? s.errors.map((e) => h('p', { class: 'bad-text' }, e)) : 'none'))));
}

function about(s) {
  const replicas = s.replicas ? `${num(s.replicas_online)} of ${num(s.replicas)} online` : 'none';
  return h('section', { class: 'card' }, h('header', null, h('h2', null, 'Server')), h('div', { class: 'body' }, h('dl', null,
    fact('Version', 'version', or(s.version, (v) => v)), fact('Role', 'role', or(s.role, (v) => v)), fact('Replicas', 'replicas', or(s.replicas, () => replicas)),
    fact('Up for', 'uptime', or(s.uptime_ms, span)), fact('Connections', 'clients', or(s.clients, num)), fact('Commands a second', 'commands', or(s.commands_per_second, num)))));
}

export default async function server(main, params, ctx) {
  ctx.title('Server');
  const { servers, doctor } = await get('server', {}, ctx.signal);
  const findings = [...doctor].sort((a, b) => rank[a.level] - rank[b.level]);
  const count = (level) => doctor.filter((f) => f.level === level).length;
  const pill = (level, one, many) => (count(level) ? h('span', { class: 'pill ' + tone[level] }, plural(count(level), one, many)) : null);
  fill(main, h('div', { class: 'head' }, h('h1', { class: 'grow' }, 'Server'), h('div', { class: 'actions' }, h('button', { class: 'btn', type: 'button', onclick: () => ctx.reload() }, 'Ask again'))),
    servers.map((s) => [s.addr ? h('h2', { class: 'node mono' }, s.addr) : null, h('div', { class: 'cols three' }, memory(s), persistence(s), about(s))]),
    h('section', { class: 'card' }, h('header', null, h('h2', null, 'Doctor'),
      h('div', { class: 'right' }, pill('fail', 'to be mended', 'to be mended'), pill('warn', 'worth a look', 'worth a look'), pill('unknown', 'not told', 'not told'), pill('ok', 'in order', 'in order'))),
    h('div', { class: 'scroll' }, h('table', { class: 'stack', 'aria-label': 'Findings' },
      h('thead', { class: 'skip' }, h('tr', null, h('th', { scope: 'col' }, 'Level'), h('th', { scope: 'col' }, 'Check'), h('th', { scope: 'col' }, 'Finding'))),
      h('tbody', null, findings.map((f) => h('tr', { 'data-check': f.check },
        h('td', { class: 'level' }, h('span', { class: 'pill ' + (tone[f.level] || '') }, f.level)), h('td', { class: 'nowrap' }, h('b', null, f.check)),
        h('td', { class: 'wide' }, f.detail, f.fix ? h('p', { class: 'muted' }, f.fix) : null))))))));
}
