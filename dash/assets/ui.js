// Pieces that several pages use.
import { $, h, fill, link } from './dom.js';
import { setDialog } from './live.js';

export function toast(message, bad, ...more) {
  const el = h('div', { class: bad ? 'toast bad' : 'toast' }, message, more);
  $('toasts').append(el);
  setTimeout(() => el.remove(), bad ? 9000 : 5000);
}

/** failed shows an error where the content would be. */
export function errorBox(err) {
  return h('div', { class: 'errorbox', role: 'alert' }, err.message, err.hint ? h('small', null, err.hint) : null);
}

/** tell runs something and shows its error as a toast; it returns undefined then. */
export async function tell(doing) {
  try { return await doing(); } catch (err) {
    if (err.name !== 'AbortError') toast(err.message, true);
    return undefined;
  }
}

/** copy works without TLS too, where the browser has no clipboard for pages. */
export async function copy(value, what) {
  let done = false;
  if (navigator.clipboard && window.isSecureContext) {
    try { await navigator.clipboard.writeText(value); done = true; } catch { /* the old way */ }
  }
  if (!done) {
    const area = h('textarea', { class: 'skip', 'aria-hidden': 'true' });
    area.value = value;
    ($('dialog').open ? $('dialog') : document.body).append(area);
    area.select();
    done = document.execCommand('copy');
    area.remove();
  }
  toast(done ? `Copied ${what}` : 'The browser does not allow copying', !done);
}

export function copyButton(value, what, label = 'copy') {
  return h('button', { class: 'copy', type: 'button', title: `Copy ${what}`, onclick: (e) => { e.stopPropagation(); copy(typeof value === 'function' ? value() : value, what); } }, label);
}

export function empty(title, ...rest) {
  return h('div', { class: 'empty' }, h('b', null, title), rest.map((r) => (typeof r === 'string' ? h('p', null, r) : r)));
}

/** confirm asks in a dialog. Fields are elements with a name; it resolves to their values, or null. */
export function confirm({ title, body, fields, action, danger, wide }) {
  return new Promise((resolve) => {
    const d = $('dialog');
    d.className = wide ? 'wide' : '';
    let answer = null;
    const form = h('form', { method: 'dialog', onsubmit: (e) => {
      e.preventDefault();
      answer = Object.fromEntries([...form.elements].filter((x) => x.name).map((x) => [x.name, x.type === 'checkbox' ? x.checked : x.value]));
      d.close();
    } },
    h('h2', { id: 'dialog-title' }, title), body || null, fields || null,
    h('div', { class: 'buttons' },
      action ? h('button', { class: 'btn', type: 'button', onclick: () => d.close() }, 'Cancel') : null,
      h('button', { class: 'btn main' + (danger ? ' danger' : ''), type: 'submit', 'data-confirm': '' }, action || 'Close')));
    fill(d, form);
    d.onclose = () => { d.onclose = null; setDialog(false); fill(d); resolve(answer); };
    setDialog(true);
    d.showModal();
    const first = form.querySelector('input, textarea, select') || form.querySelector('[data-confirm]');
    if (first) first.focus();
  });
}

export function field(label, input) { return h('label', { class: 'field' }, label, input); }

/** crumbs and tabs are the head of every page about a stream or a group. */
export function heading(ctx, page, { stream, group }, title, ...actions) {
  ctx.title(title === stream || title === group ? title : `${title} · ${group || stream}`);
  const tab = (p, label, params, count, bad) => h('a', { href: link(p, params), 'aria-current': p === page ? 'page' : null }, label,
    count ? h('span', { class: bad ? 'n bad' : 'n', 'data-count': p }, count) : null);
  const sg = { stream, group };
  return [
    h('div', { class: 'crumbs' }, h('a', { href: link('overview') }, 'Overview'), '›',
      group ? [h('a', { href: link('messages', sg) }, stream), '›', h('a', { href: link('group', sg) }, group)] : h('a', { href: link('messages', { stream }) }, stream)),
    h('div', { class: 'head' }, h('h1', { class: 'grow' }, title), h('div', { class: 'actions' }, actions)),
    h('nav', { class: 'tabs', 'aria-label': group ? 'Pages of the group' : 'Pages of the stream' },
      group ? tab('group', 'Group', sg) : null,
      tab('messages', 'Messages', group ? sg : { stream }), tab('delayed', 'Delayed', group ? sg : { stream }),
      group ? tab('dead', 'Dead letters', sg) : null),
  ];
}

/** pager walks by cursors: the way back is what was walked. */
export function pager(ctx, params, next, note) {
  const trail = (params.get('trail') || '').split('~').filter(Boolean);
  const after = params.get('after') || '';
  if (!note && !after && !next) return null;
  const go = (change) => ctx.go({ ...Object.fromEntries(params), ...change });
  return h('div', { class: 'pager' }, h('span', null, note), h('span', { class: 'right' },
    after ? h('button', { class: 'btn small', type: 'button', onclick: () => go({ after: trail.pop() || '', trail: trail.join('~') }) }, 'Back') : null, ' ',
    next ? h('button', { class: 'btn small', type: 'button', 'data-next': '', onclick: () => go({ after: next, trail: after ? [...trail, after].slice(-50).join('~') : '' }) }, 'Next page') : null));
}

export const table = (label, heads, body, cls) => h('div', { class: 'scroll' }, h('table', { class: cls || 'stack', 'aria-label': label },
  h('thead', null, h('tr', null, heads.map((x) => (x instanceof Node ? x : h('th', { scope: 'col', class: x.startsWith('#') ? 'num' : null }, x.replace(/^#/, '')))))), body));
