// Every stream and group, live.
import { h, fill, text, link } from './dom.js';
import { get } from './api.js';
import { num, rate, span } from './format.js';
import { watch } from './live.js';
import { spark, follow } from './chart.js';
import { empty } from './ui.js';

const STUCK = 5 * 60 * 1000; // an oldest message of this age is worth a look

const columns = [
  ['name', 'Stream / group', (g) => g.stream + '\u0000' + g.group], ['lag', 'Waiting', (g) => g.lag ?? -1], ['pending', 'In flight', (g) => g.pending],
  ['retrying', 'Retrying', (g) => g.retry + g.retrying], ['delayed', 'Delayed', (g) => g.delayed], ['dead', 'Dead', (g) => g.dead],
  ['oldest', 'Oldest', (g) => g.oldest_ms], ['consumers', 'Consumers', (g) => g.consumers], ['in', 'In /s', (g) => g.in_rate ?? -1], ['out', 'Done /s', (g) => g.out_rate ?? -1],
];

/** idle says that something waits and nobody is there to take it. */
export const idle = (g) => g.group !== '' && g.consumers === 0 && (g.lag > 0 || g.retry > 0 || g.retrying > 0);

export const trouble = (g) => g.dead > 0 || g.paused || g.oldest_ms > STUCK || idle(g);

function makeRow(g) {
  const sg = { stream: g.stream, group: g.group };
  const cell = (label, href) => { const a = href ? h('a', { href }) : h('span'); return [h('td', { class: 'num', 'data-label': label }, a), a]; };
  const [lagTd, lag] = cell('Waiting', link('messages', sg));
  const [pendTd, pending] = cell('In flight', g.group ? link('group', { ...sg, show: 'pending' }) : null);
  const [retTd, retrying] = cell('Retrying', g.group ? link('group', { ...sg, show: 'retrying' }) : null);
  const [delTd, delayed] = cell('Delayed', link('delayed', sg));
  const [deadTd, deadA] = cell('Dead', g.group ? link('dead', sg) : null);
  deadA.dataset.dead = g.group;
  const [conTd, consumers] = cell('Consumers', g.group ? link('group', { ...sg, show: 'consumers' }) : null);
  const [oldTd, oldest] = cell('Oldest'), [inTd, inRate] = cell('In /s'), [outTd, outRate] = cell('Done /s');
  const state = h('span');
  const chart = spark();
  const points = [];
  const el = h('tr', { 'data-row': '', 'data-stream': g.stream },
    h('td', { class: 'name' }, g.group ? [h('a', { href: link('group', sg) }, h('span', { class: 'stream' }, g.stream, ' / '), h('b', null, g.group)), ' '] : [h('a', { href: link('messages', { stream: g.stream }) }, h('b', null, g.stream)), h('span', { class: 'muted' }, ' no group reads it'), ' '], state),
    lagTd, pendTd, retTd, delTd, deadTd, oldTd, conTd, inTd, outTd, h('td', { class: 'wide' }, g.group ? chart.el : null));
  let shown = '';
  const set = (td, a, value, label) => { text(a, label ?? num(value)); td.classList.toggle('zero', value === 0); };
  return {
    el, points, chart,
    update(next) {
      set(lagTd, lag, next.group ? next.lag : next.length);
      set(pendTd, pending, next.pending);
      set(retTd, retrying, next.retry + next.retrying);
      set(delTd, delayed, next.delayed);
      set(deadTd, deadA, next.dead);
      deadA.classList.toggle('bad', next.dead > 0);
      set(oldTd, oldest, next.oldest_ms, next.oldest_ms ? span(next.oldest_ms) : '–');
      oldest.classList.toggle('warn-text', next.oldest_ms > STUCK);
      set(conTd, consumers, next.consumers);
      set(inTd, inRate, next.in_rate ?? 0, rate(next.in_rate));
      set(outTd, outRate, next.out_rate ?? 0, rate(next.out_rate));
      const now = JSON.stringify([next.pause, idle(next)]);
      if (now === shown) return;
      shown = now;
      fill(state, next.paused ? h('span', { class: 'pill warn', title: next.pause.reason || 'no reason was given' }, 'paused') : null,
        idle(next) ? h('span', { class: 'pill bad', title: 'Messages wait, and no worker of this group is connected' }, 'no workers') : null);
    },
  };
}

export default async function overview(main, params, ctx) {
  ctx.title('');
  const first = await get('ls', { history: 60 }, ctx.signal);
  const rows = new Map();
  let sample = first, sort = params.get('sort') || 'name', desc = params.get('desc') === '1';

  const tiles = {};
  const tile = (key, label, href) => { tiles[key] = h('b'); return h('div', { class: 'tile', 'data-tile': key }, tiles[key], h('span', null, label)); };
  const search = h('input', { type: 'search', placeholder: 'Stream or group', 'aria-label': 'Search streams and groups', value: params.get('q') || '', oninput: () => { keep(); arrange(); } });
  const only = h('input', { type: 'checkbox', checked: params.get('trouble') === '1', onchange: () => { keep(); arrange(); } });
  const heads = columns.map(([key, label], i) => h('th', { scope: 'col', class: i ? 'num' : null }, h('button', { type: 'button', class: 'sort', onclick: () => {
    if (sort === key) desc = !desc; else { sort = key; desc = i > 0; }
    keep(); arrange();
  } }, label)));
  const body = h('tbody');
  const none = h('div', { hidden: true }, empty('Nothing matches', 'No stream or group has this in its name, or none is in trouble.'));
  const count = h('span', { class: 'muted' });
  const card = h('section', { class: 'card' },
    h('header', null, h('h2', null, 'Streams and groups'), count, h('div', { class: 'right' }, h('label', { class: 'check', title: 'Dead letters, paused, no workers, or a message older than five minutes' }, only, 'needs a look'), search)),
    h('div', { class: 'scroll' }, h('table', { class: 'stack', 'aria-label': 'Streams and groups' }, h('thead', null, h('tr', null, heads, h('th', { scope: 'col' }, 'In and done, lately'))), body)), none);
  const start = empty('No queue yet', 'A stream appears here once a program publishes to it or subscribes. Try it:',
    h('pre', null, "xstreamq publish orders '{\"id\":1}'\nxstreamq work orders billing -- ./bill.sh"));

  function keep() { // deep links keep filters
    history.replaceState(null, '', link('overview', { q: search.value, trouble: only.checked ? '1' : '', sort: sort === 'name' ? '' : sort, desc: desc ? '1' : '' }));
  }
  function arrange() {
    const by = columns.find(([k]) => k === sort) || columns[0];
    const needle = search.value.toLowerCase();
    const list = sample.groups.filter((g) => (!needle || (g.stream + ' ' + g.group).toLowerCase().includes(needle)) && (!only.checked || trouble(g)));
    list.sort((a, b) => { const x = by[2](a), y = by[2](b); return (x < y ? -1 : x > y ? 1 : 0) * (desc ? -1 : 1) || (a.stream + a.group < b.stream + b.group ? -1 : 1); });
    const els = list.map((g) => rows.get(g.stream + '\u0000' + g.group).el);
    if (els.length !== body.children.length || els.some((e, i) => body.children[i] !== e)) body.replaceChildren(...els);
    none.hidden = els.length > 0;
    columns.forEach(([k], i) => { if (k === by[0]) heads[i].setAttribute('aria-sort', desc ? 'descending' : 'ascending'); else heads[i].removeAttribute('aria-sort'); });
    text(count, list.length === sample.groups.length ? num(list.length) : `${num(list.length)} of ${num(sample.groups.length)}`);
  }
  function take(next, history) {
    sample = next;
    const seen = new Set();
    const streams = new Map();
    const sum = { lag: 0, pending: 0, retrying: 0, dead: 0, in: 0, out: 0 };
    next.groups.forEach((g, i) => {
      const key = g.stream + '\u0000' + g.group;
      seen.add(key);
      let row = rows.get(key);
      if (!row) { row = makeRow(g); rows.set(key, row); }
      if (history) row.points.push(...history[i]); else follow(row.points, next, g);
      row.update(g);
      row.chart.set(row.points);
      streams.set(g.stream, g.delayed);
      if (g.group) sum.lag = g.lag === null || sum.lag === null ? null : sum.lag + g.lag;
      sum.pending += g.pending; sum.retrying += g.retry + g.retrying; sum.dead += g.dead; sum.in += g.in_rate ?? 0; sum.out += g.out_rate ?? 0;
    });
    for (const key of rows.keys()) if (!seen.has(key)) rows.delete(key);
    text(tiles.streams, num(streams.size)); text(tiles.groups, num(next.groups.filter((g) => g.group).length));
    text(tiles.lag, num(sum.lag)); text(tiles.pending, num(sum.pending)); text(tiles.retrying, num(sum.retrying));
    text(tiles.delayed, num([...streams.values()].reduce((a, b) => a + b, 0))); text(tiles.dead, num(sum.dead));
    text(tiles.in, rate(sum.in)); text(tiles.out, rate(sum.out));
    tiles.dead.parentNode.classList.toggle('bad', sum.dead > 0);
    card.hidden = next.groups.length === 0;
    start.hidden = next.groups.length > 0;
    arrange();
  }
  fill(main, h('h1', { class: 'skip' }, 'Overview'),
    h('div', { class: 'tiles' }, tile('streams', 'streams'), tile('groups', 'groups'), tile('lag', 'waiting'), tile('pending', 'in flight'), tile('retrying', 'retrying'),
      tile('delayed', 'delayed'), tile('dead', 'dead'), tile('in', 'in /s'), tile('out', 'done /s')), card, start);
  take(first, first.history);
  watch({}, take);
}
