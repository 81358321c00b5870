// One group: charts, who consumes, what is in flight, what is retrying, what pins compaction.
import { h, fill, text, link } from './dom.js';
import { get, post } from './api.js';
import { due, num, plural, preview, span, time } from './format.js';
import { holding, watch } from './live.js';
import { chart, follow } from './chart.js';
import { confirm, copyButton, empty, errorBox, field, heading, pager, table, tell, toast } from './ui.js';
import { taskCard } from './tasks.js';
import { idle } from './overview.js';

export function lease(c) {
  if (c.heartbeat_ms === null) return h('span', { class: 'pill', title: 'No lease record: not a worker of this library' }, 'foreign');
  if (c.visibility_ms && c.heartbeat_ms > c.visibility_ms) return h('span', { class: 'pill bad', title: 'Silent for longer than its visibility timeout: what it holds goes to others' }, 'dead');
  if (c.heartbeat_ms > 5000) return h('span', { class: 'pill warn', title: 'A heartbeat comes once a second' }, 'late');
  return h('span', { class: 'pill good' }, 'alive');
}

export default async function group(main, params, ctx) {
  const stream = params.get('stream') || '', name = params.get('group') || '';
  const sg = { stream, group: name };
  // The parts are read beside the rest; one that fails shows its own error.
  const make = (f) => f(ctx, params, sg).catch((err) => {
    if (err.name === 'AbortError') throw err;
    return h('section', { class: 'card' }, h('div', { class: 'body' }, errorBox(err)));
  });
  const makers = [consumersCard, compactionCard, pendingCard, retryingCard];
  const making = Promise.all(makers.map(make));
  making.catch(() => {}); // the page may be left before it is waited for
  const first = await get('ls', { ...sg, history: 150 }, ctx.signal);
  let now = first.groups[0];
  if (!now) {
    fill(main, heading(ctx, 'group', sg, name), h('section', { class: 'card' }, empty('There is no such group',
      'It was removed, or no client with this key prefix has used it yet. A group begins with its first subscription, or with:',
      h('pre', null, `xstreamq group create ${stream} ${name}`))));
    return;
  }
  const points = first.history[0];
  const state = h('span');
  const notice = h('div', { class: 'notice', hidden: true, 'data-pause': '' });
  let pause_; // as it is shown
  const toggle = h('button', { class: 'btn', type: 'button', disabled: !ctx.canWrite, title: ctx.canWrite ? null : 'This dashboard is read-only', onclick: () => (now.paused ? resume() : pause()) });

  async function pause() {
    const a = await confirm({ title: `Pause ${name}?`, action: 'Pause', body: h('p', null, 'Its workers stop reading within a second. What runs goes on, what fails is still parked, and publishing is not touched.'),
      fields: [field('Reason, for whoever looks next', h('input', { name: 'reason', maxlength: 300 })),
        field('For how long', h('select', { name: 'for' }, h('option', { value: '' }, 'until somebody resumes it'), ['10m', '30m', '1h', '4h', '24h'].map((d) => h('option', { value: d }, d))))] });
    if (a && await tell(() => post('pause', { ...sg, reason: a.reason, for: a.for }))) { toast(`${name} is paused`); ctx.reload(); }
  }
  async function resume() {
    if (await tell(() => post('resume', sg))) { toast(`${name} reads again`); ctx.reload(); }
  }

  const tiles = {};
  const tile = (key, label, href) => { tiles[key] = h('b'); return h(href ? 'a' : 'div', { class: 'tile', href: href || null, 'data-tile': key }, tiles[key], h('span', null, label)); };
  const rates = chart('Messages a second', [['in', 'in'], ['out', 'done']], true);
  const work = chart('Waiting and in flight', [['lag', 'waiting'], ['pending', 'in flight']]);
  const bad = chart('Retrying and dead', [['retrying', 'retrying'], ['dead', 'dead']]);
  function take(sample, old) {
    const g = sample.groups[0];
    if (!g) return;
    now = g;
    if (!old) follow(points, sample, g);
    text(tiles.lag, num(g.lag)); text(tiles.pending, num(g.pending)); text(tiles.retry, num(g.retry)); text(tiles.retrying, num(g.retrying));
    text(tiles.delayed, num(g.delayed)); text(tiles.dead, num(g.dead)); text(tiles.oldest, g.oldest_ms ? span(g.oldest_ms) : '–'); text(tiles.length, num(g.length)); text(tiles.consumers, num(g.consumers));
    tiles.dead.parentNode.classList.toggle('bad', g.dead > 0);
    tiles.oldest.parentNode.classList.toggle('warn', g.oldest_ms > 300000);
    tiles.consumers.parentNode.classList.toggle('bad', idle(g));
    for (const c of [rates, work, bad]) c.set(points);
    const flag = JSON.stringify(g.pause);
    if (flag !== pause_) {
      pause_ = flag;
      fill(state, g.paused ? h('span', { class: 'pill warn' }, 'paused') : null);
      text(toggle, g.paused ? 'Resume' : 'Pause');
      notice.hidden = !g.paused;
      fill(notice, pauseText(g.pause));
    }
  }
  fill(main, heading(ctx, 'group', sg, name, state, toggle),
    notice, h('div', { class: 'tiles' }, tile('lag', 'waiting', link('messages', sg)), tile('pending', 'in flight', link('group', { ...sg, show: 'pending' })), tile('retry', 'due again'),
      tile('retrying', 'retrying', link('group', { ...sg, show: 'retrying' })), tile('dead', 'dead', link('dead', sg)), tile('delayed', 'delayed', link('delayed', sg)), tile('oldest', 'oldest'), tile('length', 'entries kept'), tile('consumers', 'consumers', link('group', { ...sg, show: 'consumers' }))),
    await taskCard(ctx, sg),
    h('div', { class: 'charts' }, rates.el, work.el, bad.el));
  take(first, true);

  const parts = await making;
  main.append(h('div', { class: 'cols' }, parts[0], parts[1]), parts[2], parts[3]);

  // They are read again while samples come, but for one that somebody is at: rows do not move under a hand.
  let reading = false, read = Date.now();
  async function again() {
    if (reading || Date.now() - read < 2 * ctx.config.interval_ms) return;
    reading = true;
    try {
      await Promise.all(makers.map(async (f, i) => {
        if (busy(parts[i])) return;
        const next = await make(f);
        if (busy(parts[i]) || holding()) return;
        parts[i].replaceWith(next);
        parts[i] = next;
      }));
    } catch { /* the page was left */ }
    reading = false;
    read = Date.now();
  }
  watch(sg, (sample) => { take(sample); if (!sample.error) again(); });
  if (params.get('show')) requestAnimationFrame(() => { const el = document.getElementById('at-' + params.get('show')); if (el) el.scrollIntoView({ block: 'start' }); });
}

/** busy says that somebody points at it, stands in it, or marks its text. */
function busy(el) {
  const mark = getSelection();
  return el.matches(':hover') || el.contains(document.activeElement) || el.querySelector('tr.at') !== null || (!mark.isCollapsed && mark.containsNode(el, true));
}

function pauseText(p) {
  if (!p) return [];
  const since = Date.parse(p.since) > 0, until = p.until && Date.parse(p.until) > 0;
  return [h('b', null, 'Paused'), since ? [' since ', time(p.since)] : null, ', until ', until ? [time(p.until), ' or until '] : null, 'somebody resumes it', p.reason ? [': ', h('b', null, p.reason)] : '. No reason was given.'];
}

async function consumersCard(ctx, params, sg) {
  const { items, total } = await get('consumers', sg, ctx.signal);
  items.sort((a, b) => b.pending - a.pending || (a.name < b.name ? -1 : 1));
  const body = items.length ? table('Consumers', ['Consumer', 'Lease', '#Holds', '#Heartbeat', '#Allowed silence'], h('tbody', null, items.slice(0, 200).map((c) => h('tr', { 'data-row': '' },
    h('td', { class: 'name mono' }, c.name, copyButton(c.name, 'the name')), h('td', { 'data-label': 'Lease' }, lease(c)),
    h('td', { class: 'num', 'data-label': 'Holds' }, c.pending ? h('a', { href: link('group', { ...sg, consumer: c.name, show: 'pending' }) }, num(c.pending)) : '0'),
    h('td', { class: 'num', 'data-label': 'Heartbeat' }, c.heartbeat_ms === null ? '–' : span(c.heartbeat_ms) + ' ago'),
    h('td', { class: 'num', 'data-label': 'Allowed silence' }, c.visibility_ms ? span(c.visibility_ms) : '–')))))
    : empty('Nobody consumes', 'No worker of this group is connected. What is published waits, and nothing is lost. A worker in any language:', h('pre', null, `xstreamq work ${sg.stream} ${sg.group} -- ./handle.sh`));
  return h('section', { class: 'card', id: 'at-consumers' }, h('header', null, h('h2', null, 'Consumers'), h('span', { class: 'muted' }, num(total))), body);
}

async function pendingCard(ctx, params, sg) {
  const { items, next } = await get('pending', { ...sg, after: params.get('show') === 'pending' ? params.get('after') : '', limit: params.get('consumer') ? 500 : 50 }, ctx.signal);
  const who = params.get('consumer');
  const list = who ? items.filter((e) => e.consumer === who) : items;
  const body = list.length ? table('In flight', ['Message', 'Consumer', '#Held for', '#Deliveries', 'From'], h('tbody', null, list.map((e) => h('tr', { 'data-row': '' },
    h('td', { class: 'name mono' }, h('a', { href: link('message', { ...sg, id: e.entry_id }) }, e.entry_id)), h('td', { class: 'mono', 'data-label': 'Consumer' }, e.consumer),
    h('td', { class: 'num', 'data-label': 'Held for' }, span(e.idle_ms)), h('td', { class: 'num', 'data-label': 'Deliveries' }, num(e.deliveries)), h('td', { 'data-label': 'From' }, e.retry ? 'retry' : 'stream')))))
    : empty('Nothing is in flight', who ? 'This consumer holds none of the first 500.' : 'Messages appear here while a handler works on them, or while a worker has read them ahead.');
  return h('section', { class: 'card', id: 'at-pending' }, h('header', null, h('h2', null, 'In flight'), who ? h('span', { class: 'pill info' }, who) : null,
    h('div', { class: 'right' }, who ? h('a', { class: 'btn small', href: link('group', { ...sg, show: 'pending' }) }, 'All consumers') : null)), body,
  !who && (next || params.get('after')) ? pager(ctx, new URLSearchParams({ ...Object.fromEntries(params), show: 'pending', page: 'group' }), next, 'oldest first') : null);
}

async function retryingCard(ctx, params, sg) {
  const { items, next } = await get('retrying', { ...sg, limit: 50, raw: 1, after: params.get('show') === 'retrying' ? params.get('after') : '' }, ctx.signal);
  const body = items.length ? table('Retrying', ['Message', '#Next attempt', 'Due', 'Due at', 'Last error', 'Body'], h('tbody', null, items.map((m) => h('tr', { 'data-row': '' },
    h('td', { class: 'name mono' }, h('a', { href: link('message', { ...sg, id: m.entry_id }) }, m.id)), h('td', { class: 'num', 'data-label': 'Next attempt' }, num(m.attempt)),
    h('td', { class: 'nowrap', 'data-label': 'Due' }, due(m.due_at)), h('td', { 'data-label': 'Due at' }, time(m.due_at)),
    h('td', { class: 'clip', title: m.error || null }, m.error || h('span', { class: 'muted' }, '–')), h('td', { class: 'clip' }, preview(m))))))
    : empty('Nothing waits for a retry', 'A message that fails waits out its backoff here, then goes to a worker again.');
  return h('section', { class: 'card', id: 'at-retrying' }, h('header', null, h('h2', null, 'Retrying'), h('span', { class: 'muted' }, 'soonest first')), body,
    next || (params.get('show') === 'retrying' && params.get('after')) ? pager(ctx, new URLSearchParams({ ...Object.fromEntries(params), show: 'retrying', page: 'group' }), next, '') : null);
}

async function compactionCard(ctx, params, sg) {
  const c = await get('compaction', { stream: sg.stream }, ctx.signal);
  const held = c.held_by.filter((g) => g.group);
  const run = async () => {
    const done = await tell(() => post('compact', { stream: sg.stream }));
    if (done) { toast(`Removed ${plural(done.removed, 'entry', 'entries')}`); ctx.reload(); }
  };
  return h('section', { class: 'card' }, h('header', null, h('h2', null, 'Compaction'),
    h('div', { class: 'right' }, ctx.canWrite ? h('button', { class: 'btn small', type: 'button', disabled: !c.removed, onclick: run }, 'Compact now') : null)),
  h('div', { class: 'body' }, h('dl', null,
    h('dt', null, 'History kept'), h('dd', null, c.retain_ms === null ? 'for ever' : c.retain_ms === 0 ? 'none: what every group is done with is trimmed' : span(c.retain_ms)),
    h('dt', null, 'Could be trimmed now'), h('dd', null, c.floor ? plural(c.removed, 'entry', 'entries') : 'nothing'),
    h('dt', null, 'Still needed from'), h('dd', { class: 'mono' }, c.floor || '–'),
    h('dt', null, 'Needed there by'), h('dd', null, held.length ? held.map((g, i) => [i ? ', ' : '', h('a', { href: link('group', g) }, g.group)]) : 'nobody'))));
}
