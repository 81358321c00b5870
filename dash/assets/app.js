// The frame: which page is shown, and what all pages share.
import { $, h, fill, link, text } from './dom.js';
import { get } from './api.js';
import { isUTC, setUTC } from './format.js';
import * as live from './live.js';
import { confirm, errorBox } from './ui.js';
import overview from './overview.js';
import group from './group.js';
import messages from './messages.js';
import message from './message.js';
import delayed from './delayed.js';
import dead from './dead.js';
import letter from './letter.js';
import tasks from './tasks.js';
import server from './server.js';

const pages = { overview, group, messages, message, delayed, dead, letter, tasks, server };
const under = { group: 'overview', messages: 'overview', message: 'overview', delayed: 'overview', dead: 'overview', letter: 'overview' };

let config = { read_only: true };
let leave = null;   // of the page that is shown
let stop = null;    // aborts its questions
let turn = 0;

/** What a page gets beside its element and its parameters. */
function context(signal, params, name) {
  return {
    signal, config,
    canWrite: !config.read_only,
    title(s) { document.title = (s ? s + ' · ' : '') + 'xstreamq' + (config.environment ? ` (${config.environment})` : ''); },
    /** go changes the address: to another page, or this one with other filters. */
    go(to, replace) { navigate(typeof to === 'string' ? to : link(to.page || name, { ...to, page: undefined }), replace); },
    reload() { render(); },
    onLeave(f) { const before = leave; leave = () => { if (before) before(); f(); }; },
  };
}

async function render() {
  const mine = ++turn;
  if (leave) leave();
  leave = null;
  if (stop) stop.abort();
  stop = new AbortController();
  live.unwatch();
  live.setSelected(0);
  const params = new URLSearchParams(location.search);
  const name = pages[params.get('page') || 'overview'] ? params.get('page') || 'overview' : 'overview';
  for (const a of $('nav').children) {
    if ((under[name] || name) === a.dataset.page) a.setAttribute('aria-current', 'page'); else a.removeAttribute('aria-current');
  }
  const main = h('main', { id: 'main', tabindex: '-1', 'data-page': name });
  const ctx = context(stop.signal, params, name);
  try {
    await pages[name](main, params, ctx);
  } catch (err) {
    if (err.name === 'AbortError' || mine !== turn) return;
    ctx.title('Error');
    fill(main, h('div', { class: 'crumbs' }, h('a', { href: link() }, 'Overview')), h('div', { class: 'head' }, h('h1', null, 'This page cannot be shown')), errorBox(err),
      h('p', { class: 'pad' }, h('button', { class: 'btn', type: 'button', onclick: () => render() }, 'Try again')));
    if (err.unreachable) { // it heals by itself
      const again = setTimeout(() => { if (mine === turn) render(); }, 3000);
      leave = () => clearTimeout(again);
    }
  }
  if (mine !== turn) return;
  $('main').replaceWith(main);
  main.dataset.ready = '1';
  performance.mark('page'); // how long it took, for whoever measures
}

function navigate(to, replace) {
  const changed = new URL(to, location.href).searchParams.get('page') !== new URLSearchParams(location.search).get('page');
  history[replace ? 'replaceState' : 'pushState'](null, '', to);
  render().then(() => { if (changed) { scrollTo(0, 0); $('main').focus({ preventScroll: true }); } });
}

document.addEventListener('click', (e) => {
  const a = e.target.closest && e.target.closest('a[href^="?"]');
  if (!a || e.defaultPrevented || e.button || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  e.preventDefault();
  navigate(a.getAttribute('href'));
});
addEventListener('popstate', render);

// Times, colours, the live button.
const showZone = () => text($('zone'), isUTC() ? 'UTC' : 'Local');
$('zone').onclick = () => { setUTC(!isUTC()); showZone(); };
showZone();
const themes = ['', 'light', 'dark'];
const theme = () => document.documentElement.dataset.theme || '';
const showTheme = () => text($('theme'), { '': 'Auto', light: 'Light', dark: 'Dark' }[theme()]);
$('theme').onclick = () => {
  const next = themes[(themes.indexOf(theme()) + 1) % 3];
  if (next) document.documentElement.dataset.theme = next; else delete document.documentElement.dataset.theme;
  try { localStorage.setItem('xstreamq.theme', next); } catch { /* no storage */ }
  showTheme();
};
showTheme();
$('live').onclick = () => live.toggle();

// The keyboard.
const help = [['/', 'search, or the first filter'], ['j k', 'next row, row before'], ['Enter', 'open the row'], ['x', 'select the row'], ['Esc', 'select nothing'],
  ['p', 'hold or resume live updates'], ['r', 'read the page again'], ['g o', 'overview'], ['g t', 'tasks'], ['g s', 'server'], ['t', 'local times, or UTC'], ['?', 'this list']];
const showHelp = () => confirm({ title: 'Keyboard', body: h('dl', null, help.map(([k, what]) => [h('dt', null, k.split(' ').map((x) => [h('kbd', null, x), ' '])), h('dd', null, what)])) });
$('keys').onclick = showHelp;

let chord = false; // g was pressed: the next key says where to
function move(by) {
  const rows = [...document.querySelectorAll('#main tbody tr[data-row]')].filter((r) => r.offsetParent);
  if (!rows.length) return;
  const at = rows.findIndex((r) => r.classList.contains('at'));
  const next = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by))];
  for (const r of rows) r.classList.toggle('at', r === next);
  next.scrollIntoView({ block: 'nearest' });
}
document.addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || $('dialog').open) return;
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName) && e.target.type !== 'checkbox';
  if (typing) { if (e.key === 'Escape') e.target.blur(); return; }
  const row = document.querySelector('#main tr.at');
  if (chord) {
    chord = false;
    const to = { o: link(), t: link('tasks'), s: link('server') }[e.key];
    if (to) { navigate(to); return; }
  }
  const keys = {
    g: () => { chord = true; },
    '/': () => { const f = document.querySelector('#main input[type="search"], #main .filters input'); if (f) { f.focus(); f.select(); } },
    j: () => move(1), k: () => move(-1), r: () => render(), p: () => live.toggle(), t: () => $('zone').click(), '?': showHelp,
    x: () => { const c = row && row.querySelector('input[type="checkbox"]'); if (c) c.click(); },
    Enter: () => { if (e.target === document.body || e.target === $('main')) { const a = row && row.querySelector('a'); if (a) a.click(); } },
    Escape: () => { const all = document.querySelector('#main [data-none]'); if (all) all.click(); },
  };
  if (keys[e.key]) {
    if (e.key !== 'Enter') e.preventDefault();
    keys[e.key]();
  }
});

async function start() {
  try {
    config = await get('config');
  } catch (err) {
    fill($('main'), errorBox(err));
    if (err.unreachable) setTimeout(start, 3000);
    return;
  }
  live.setInterval_(config.interval_ms);
  const env = $('env');
  env.hidden = !config.environment;
  text(env, config.environment);
  env.title = config.environment;
  env.classList.toggle('hot', /prod/i.test(config.environment) || /live/i.test(config.environment));
  $('readonly').hidden = !config.read_only;
  await render();
}
start();
