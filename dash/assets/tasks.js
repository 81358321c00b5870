// Redrives and purges of all that match: they run in the dashboard's process, also after the tab is closed.
import { h, fill, link } from './dom.js';
import { get, post } from './api.js';
import { num, plural, rate, time } from './format.js';
import { empty, tell, toast } from './ui.js';

const words = { redrive: ['Redriving', 'redriven'], purge: ['Purging', 'purged'] };
const tone = { running: 'info', done: 'good', cancelled: 'warn', failed: 'bad' };

function filterText(f) {
  const parts = [];
  for (const [k, v] of Object.entries(f)) if (v && k !== 'all' && k !== 'header') parts.push(`${k} ${k === 'since' || k === 'before' || k === 'reason' ? v : JSON.stringify(v)}`);
  return parts.length ? parts.join(', ') : 'all dead letters';
}

function taskRow(t, ctx) {
  const [doing, did] = words[t.verb] || [t.verb, t.verb];
  const running = t.state === 'running';
  return h('div', { class: 'task', 'data-task': t.id, 'data-state': t.state },
    h('div', { class: 'what' }, h('span', { class: 'pill ' + tone[t.state] }, t.state), ' ', h('b', null, running ? doing : did[0].toUpperCase() + did.slice(1)), ` ${num(t.done)}`,
      running && t.matched ? ` of ${num(t.matched)} found` : '', ' · ', h('a', { href: link('dead', { stream: t.stream, group: t.group }) }, `${t.stream} / ${t.group}`), h('span', { class: 'muted' }, ` · ${filterText(t.filter)} · ${rate(t.per_second)}/s`,
        t.rate ? ` of ${rate(t.rate)}/s allowed` : ''),
      t.unredrivable_count ? h('span', { class: 'warn-text' }, ` · ${plural(t.unredrivable_count, 'has', 'have')} no body and stay`) : null,
      t.remaining !== null ? h('span', { class: 'muted' }, ` · ${num(t.remaining)} left in the group`) : null,
      t.error ? h('p', { class: 'bad-text' }, t.error) : null),
    h('div', null, running ? (ctx.canWrite ? h('button', { class: 'btn small', type: 'button', 'data-stop': t.id, onclick: async () => { if (await tell(() => post('tasks/cancel', { id: t.id }))) toast('It stops; what is done stays done'); } }, 'Cancel') : null) : time(t.ended_at)),
    running ? h('progress', { max: Math.max(1, t.matched), value: t.done, 'aria-label': doing }) : null);
}

/** taskCard shows the tasks of a group while there are any that run, or ended lately; it keeps itself up to date. */
export async function taskCard(ctx, sg, ended) {
  const el = h('section', { class: 'card', hidden: true, 'data-tasks': '' });
  let timer = null, before = '';
  const read = async () => {
    let list;
    try { list = await get('tasks', sg, ctx.signal); } catch (err) { if (err.name === 'AbortError') return; list = []; }
    list = list.filter((t) => t.state === 'running' || Date.now() - Date.parse(t.ended_at) < 120000).slice(0, 5);
    el.hidden = !list.length;
    fill(el, h('header', null, h('h2', null, 'Tasks'), h('div', { class: 'right' }, h('a', { class: 'btn small', href: link('tasks') }, 'All tasks'))), list.map((t) => taskRow(t, ctx)));
    const running = list.filter((t) => t.state === 'running').map((t) => t.id).join();
    if (before && running !== before && ended) ended();
    before = running;
    timer = setTimeout(read, running ? 700 : 5000);
  };
  await read();
  ctx.onLeave(() => clearTimeout(timer));
  return el;
}

export default async function tasks(main, params, ctx) {
  ctx.title('Tasks');
  const card = h('section', { class: 'card' });
  fill(main, h('div', { class: 'head' }, h('h1', { class: 'grow' }, 'Tasks')), card);
  let timer = null;
  const read = async () => {
    const list = await get('tasks', {}, ctx.signal);
    fill(card, list.length ? list.map((t) => taskRow(t, ctx)) : empty('No task has run', 'A redrive or a purge of all dead letters that match runs in the background, and is listed here with its progress, until the process that serves this page ends.'));
    timer = setTimeout(() => read().catch(() => {}), list.some((t) => t.state === 'running') ? 700 : 5000);
  };
  await read();
  ctx.onLeave(() => clearTimeout(timer));
}
