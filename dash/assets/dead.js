// Dead letters: find them, then put them back or delete them, one, some, or all that match.
import { h, fill, link, text } from './dom.js';
import { get, post } from './api.js';
import { num, plural, preview, time } from './format.js';
import { holding, setSelected, watch } from './live.js';
import { confirm, empty, field, heading, pager, table, tell, toast } from './ui.js';
import { taskCard } from './tasks.js';

export const reasons = {
  retries: 'it failed more often than its retries', lost: 'workers died or hung with it', rejected: 'its handler rejected it', 'no-body': 'an entry without a body',
  overflow: 'too many were parked', expired: 'it was too old when it would have started', cut: 'a hundred shutdowns cut its handler', malformed: 'a parked value that cannot be read', 'too-wide': 'too many fields to be moved',
};
const filters = ['reason', 'error', 'body', 'since', 'before'];

/** redriveOne puts one back at once: nothing is lost by it. */
export async function redriveOne(sg, id) {
  const r = await tell(() => post('dlq/redrive', { ...sg, ids: [id] }));
  if (!r) return false;
  if (r.unredrivable.length) toast('It has no body: edit it to give it one', true);
  else toast(r.redriven ? 'Redriven: a worker takes it within a second' : 'It was gone already');
  return r.redriven > 0;
}

export async function purgeOne(sg, id) {
  if (!await confirm({ title: 'Purge this dead letter?', action: 'Purge', danger: true, body: h('p', null, 'It is deleted for good: ', h('span', { class: 'mono' }, id)) })) return false;
  const r = await tell(() => post('dlq/purge', { ...sg, ids: [id] }));
  if (r) toast(r.purged ? 'Purged' : 'It was gone already');
  return Boolean(r);
}

export default async function dead(main, params, ctx) {
  const sg = { stream: params.get('stream') || '', group: params.get('group') || '' };
  const given = Object.fromEntries(filters.map((f) => [f, params.get(f) || '']));
  const filtered = filters.some((f) => given[f]);
  const newest = params.get('order') !== 'oldest';
  const asked = { ...sg, ...given, newest: newest ? 1 : '', after: params.get('after'), limit: 50, raw: 1 };
  const [page, first] = await Promise.all([get('dlq', asked, ctx.signal), get('depth', sg, ctx.signal)]);
  let total = first.dead, dirty = false;
  const reload = () => { if (!holding()) ctx.reload(); else dirty = true; };

  // the filters
  const input = (name, label, place, width) => h('label', { class: width }, label, h('input', { type: 'search', name, value: given[name], placeholder: place, maxlength: 300 }));
  const form = h('form', { class: 'filters', onsubmit: (e) => { e.preventDefault(); const v = Object.fromEntries(new FormData(form)); ctx.go({ ...sg, ...v, order: v.order === 'oldest' ? 'oldest' : '' }); } },
    h('label', null, 'Reason', h('select', { name: 'reason', onchange: () => form.requestSubmit() }, h('option', { value: '' }, 'any'), Object.entries(reasons).map(([r, what]) => h('option', { value: r, selected: r === given.reason, title: what }, r)))),
    input('error', 'Error contains', 'timeout'), input('body', 'Body contains', '"customer":42'), input('since', 'Died since', '90m, 24h, or a time'), input('before', 'Died before', '2026-01-31T15:04:05Z'),
    h('label', { class: 'fixed' }, 'Order', h('select', { name: 'order', onchange: () => form.requestSubmit() }, h('option', { value: '', selected: newest }, 'newest first'), h('option', { value: 'oldest', selected: !newest }, 'oldest first'))),
    h('button', { class: 'btn fixed', type: 'submit' }, 'Filter'), filtered ? h('a', { class: 'btn fixed', href: link('dead', sg) }, 'Clear') : null);

  // the selection
  const picked = new Set();
  let all = false;
  const boxes = [];
  const pickAll = h('input', { type: 'checkbox', 'aria-label': 'Select this page', onchange: () => { all = false; for (const [id, box] of boxes) { box.checked = pickAll.checked; mark(id, box); } show(); } });
  const bar = h('div', { class: 'bar', hidden: true });
  const mark = (id, box) => { if (box.checked) picked.add(id); else picked.delete(id); box.closest('tr').classList.toggle('picked', box.checked); };
  function show() {
    pickAll.checked = picked.size > 0 && picked.size === boxes.length;
    pickAll.indeterminate = picked.size > 0 && picked.size < boxes.length;
    setSelected(picked.size);
    bar.hidden = !picked.size;
    const which = all ? (filtered ? 'All that match are selected, also on other pages' : `All ${num(total)} dead letters are selected`) : `${num(picked.size)} on this page selected`;
    fill(bar, h('b', { 'data-selected': '' }, which),
      !all && pickAll.checked && (page.next || params.get('after')) ? h('button', { class: 'link', type: 'button', 'data-all': '', onclick: () => { all = true; show(); } }, filtered ? 'Select all that match the filter' : `Select all ${num(total)}`) : null,
      h('div', { class: 'right' }, h('button', { class: 'btn small main', type: 'button', 'data-redrive-selected': '', onclick: () => many('redrive') }, 'Redrive'),
        h('button', { class: 'btn small danger', type: 'button', 'data-purge-selected': '', onclick: () => many('purge') }, 'Purge'),
        h('button', { class: 'btn small', type: 'button', 'data-none': '', onclick: none }, 'Select none')));
  }
  function none() {
    all = false;
    for (const [id, box] of boxes) { box.checked = false; mark(id, box); }
    show();
    if (dirty) ctx.reload();
  }
  async function many(verb) {
    const purge = verb === 'purge';
    if (!all) {
      const ids = [...picked];
      if (purge && !await confirm({ title: `Purge ${plural(ids.length, 'dead letter', 'dead letters')}?`, action: 'Purge', danger: true, body: h('p', null, 'They are deleted for good.') })) return;
      const r = await tell(() => post('dlq/' + verb, { ...sg, ids }));
      if (r) { toast(purge ? `Purged ${num(r.purged)}` : `Redriven ${num(r.redriven)}` + (r.unredrivable.length ? `; ${r.unredrivable.length} have no body and stay` : '')); none(); ctx.reload(); }
      return;
    }
    const filter = { all: !filtered };
    for (const f of filters) if (given[f]) filter[f] = given[f];
    const a = await confirm({ title: purge ? 'Purge all that match?' : 'Redrive all that match?', action: purge ? 'Purge all' : 'Redrive all', danger: purge,
      body: [h('p', null, filtered ? 'Every dead letter of the group that matches the filter' : `All ${num(total)} dead letters of the group`, purge ? ' is deleted for good.' : ' goes back to its workers with fresh attempts.', ' Those that die meanwhile stay.'),
        filtered ? h('dl', null, filters.filter((f) => given[f]).map((f) => [h('dt', null, f), h('dd', { class: 'mono' }, given[f])])) : null],
      fields: [field('At most so many a second', h('select', { name: 'rate' }, [['0', 'as fast as is polite'], ['10', '10'], ['50', '50'], ['200', '200'], ['1000', '1,000']].map(([v, l]) => h('option', { value: v, selected: v === (purge ? '0' : '200') }, l)))),
        purge ? field(`Type the group's name to confirm: ${sg.group}`, h('input', { name: 'name', required: true, autocomplete: 'off', pattern: sg.group.replace(/[\\^$.*+?()[\]{}|/&!#%,:;<=>@`~-]/g, '\\$&') })) : null] });
    if (!a || (purge && a.name !== sg.group)) return;
    const r = await tell(() => post('dlq/' + verb, { ...sg, filter, rate: Number(a.rate) }));
    if (r) { toast('Started: it goes on when you leave this page'); none(); ctx.reload(); }
  }

  const rows = page.items.map((m) => {
    const box = h('input', { type: 'checkbox', 'aria-label': `Select ${m.entry_id}`, onchange: () => { all = false; mark(m.entry_id, box); show(); } });
    if (ctx.canWrite) boxes.push([m.entry_id, box]);
    const letter = (props) => link('letter', { ...sg, id: m.entry_id, ...props });
    return h('tr', { 'data-row': '', 'data-id': m.entry_id },
      ctx.canWrite ? h('td', { class: 'pick' }, box) : null,
      h('td', { class: 'nowrap', 'data-label': 'Died' }, h('a', { href: letter() }, time(m.dead_at))),
      h('td', { 'data-label': 'Reason' }, h('span', { class: 'pill ' + (m.reason === 'rejected' ? 'warn' : 'bad'), title: reasons[m.reason] || null }, m.reason || 'none given')),
      h('td', { class: 'num', 'data-label': 'Attempts' }, num(m.attempts)),
      h('td', { class: 'clip', title: m.error }, m.error || h('span', { class: 'muted' }, '–')), h('td', { class: 'clip' }, preview(m)),
      h('td', { class: 'act' }, ctx.canWrite ? [h('button', { class: 'btn small', type: 'button', 'data-redrive': m.entry_id, onclick: async () => { if (await redriveOne(sg, m.entry_id)) ctx.reload(); } }, 'Redrive'),
        h('a', { class: 'btn small', href: letter({ edit: 1 }) }, 'Edit'),
        h('button', { class: 'btn small danger', type: 'button', 'data-purge': m.entry_id, onclick: async () => { if (await purgeOne(sg, m.entry_id)) ctx.reload(); } }, 'Purge')] : null));
  });
  // What changes meanwhile does not move the rows under the pointer: it waits for a press.
  const read = total;
  const fresh = h('button', { class: 'btn small', type: 'button', hidden: true, onclick: () => ctx.reload() });
  const count = h('span', { class: 'muted', 'data-total': '' }, `${num(total)} in the group`);
  const body = rows.length ? table('Dead letters', [ctx.canWrite ? h('th', { class: 'pick', scope: 'col' }, pickAll) : null, 'Died', 'Reason', '#Attempts', 'Error', 'Body', h('th', { scope: 'col' }, h('span', { class: 'skip' }, 'Actions'))].filter(Boolean), h('tbody', null, rows))
    : filtered || params.get('after') ? empty(page.next ? 'None among the first 10,000' : 'Nothing matches', page.next ? 'A page looks at 10,000 dead letters; the next one goes on from there.' : 'No dead letter of this group matches all of the filter.')
      : empty('No dead letters', 'A message comes here when its retries are spent, when its handler rejects it, or when it keeps killing workers. It stays until somebody redrives or purges it: nothing here expires.');
  fill(main, heading(ctx, 'dead', sg, 'Dead letters', fresh, count), await taskCard(ctx, sg, reload),
    h('section', { class: 'card' }, total || filtered ? form : null, bar, body, rows.length || params.get('after') || page.next ? pager(ctx, params, page.next, filtered ? 'those that match' : '') : null));
  watch(sg, (sample) => {
    const g = sample.groups[0];
    if (!g || sample.error) return;
    total = g.dead;
    text(count, `${num(total)} in the group`);
    fresh.hidden = total === read;
    text(fresh, total > read ? `Show ${num(total - read)} new` : 'Changed: read again');
  });
}
