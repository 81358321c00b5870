// Lines over time, drawn as SVG. A value below 0 is not known and leaves a gap.
import { h, fill, text } from './dom.js';
import { clock, num, rate } from './format.js';

const SPAN = 360000; // what a chart shows, in ms: samples from an earlier look are left out
const GAP = 20000; // nobody looked for so long: what was between is not known

function runs(points, field, t0, t1, top, width, height) {
  const out = [];
  let run = [], before = 0;
  for (const p of points) {
    if (run.length && (p[field] < 0 || p.at - before > GAP)) { out.push(run); run = []; }
    before = p.at;
    if (p[field] < 0) continue;
    const x = t1 > t0 ? ((p.at - t0) / (t1 - t0)) * width : width;
    run.push(`${x.toFixed(1)},${(height - 1 - (p[field] / top) * (height - 3)).toFixed(1)}`);
  }
  if (run.length) out.push(run);
  return out;
}

function most(points, fields) {
  let m = 0;
  for (const p of points) for (const f of fields) m = Math.max(m, p[f]);
  return m;
}

function draw(svg, points, fields, top, width, height) {
  if (!points.length) { fill(svg); return; }
  const t0 = points[0].at, t1 = points[points.length - 1].at;
  fill(svg, fields.map((f) => runs(points, f, t0, t1, top, width, height).map((r) =>
    h('polyline', { class: 's-' + f, points: r.length === 1 ? `0,${r[0].split(',')[1]} ${r[0]}` : r.join(' ') }))));
}

/** spark is a small chart: what came in as an area, what is done as a line. */
export function spark() {
  const svg = h('svg', { class: 'spark', viewBox: '0 0 130 26', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
  return { el: svg, set(points) { const p = points.slice(-60).filter((x) => x.at > points[points.length - 1].at - SPAN); 
      const top = Math.max(most(p, ['in', 'out']), 0.001);
      draw(svg, p, ['out'], top, 130, 26);
      if (p.length > 1) svg.prepend(...runs(p, 'in', p[0].at, p[p.length - 1].at, top, 130, 26).filter((r) => r.length > 1).map((r) =>
        h('polygon', { class: 'a-in', points: `${r[0].split(',')[0]},26 ${r.join(' ')} ${r[r.length - 1].split(',')[0]},26` })));
    } };
}

/** chart is a card with lines, a legend with the newest values, and the values under the pointer. */
export function chart(title, fields, isRate) {
  const W = 600, H = 116;
  const svg = h('svg', { class: 'plot', viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': title });
  const lines = h('g'), cursor = h('line', { class: 'cursor', y1: 0, y2: H, visibility: 'hidden' });
  svg.append(h('line', { x1: 0, x2: W, y1: H - 1, y2: H - 1 }), h('line', { x1: 0, x2: W, y1: 2, y2: 2 }), lines, cursor);
  const top = h('span', { class: 'top-label' }), low = h('span', { class: 'low-label' });
  const values = Object.fromEntries(fields.map(([f]) => [f, h('b')]));
  const legend = h('div', { class: 'legend' }, fields.map(([f, label]) => h('span', null, h('i', { class: 'c-' + f }), label, ' ', values[f])));
  const el = h('section', { class: 'card' }, h('header', null, h('h2', null, title), legend), h('div', { class: 'plotbox' }, svg, top, low));
  let points = [];
  const show = (p) => { for (const [f] of fields) text(values[f], !p || p[f] < 0 ? '?' : isRate ? rate(p[f]) : num(p[f])); };
  svg.addEventListener('pointermove', (e) => {
    if (points.length < 2) return;
    const box = svg.getBoundingClientRect();
    const t = points[0].at + ((e.clientX - box.left) / box.width) * (points[points.length - 1].at - points[0].at);
    const p = points.reduce((a, b) => (Math.abs(b.at - t) < Math.abs(a.at - t) ? b : a));
    const x = ((p.at - points[0].at) / (points[points.length - 1].at - points[0].at)) * W;
    cursor.setAttribute('x1', x); cursor.setAttribute('x2', x); cursor.setAttribute('visibility', 'visible');
    text(low, clock(p.at));
    show(p);
  });
  const leave = () => {
    cursor.setAttribute('visibility', 'hidden');
    text(low, points.length > 1 ? `last ${Math.max(1, Math.round((points[points.length - 1].at - points[0].at) / 60000))} min` : '');
    show(points[points.length - 1]);
  };
  svg.addEventListener('pointerleave', leave);
  return {
    el,
    set(list) {
      points = list.filter((p) => p.at > list[list.length - 1].at - SPAN);
      const keys = fields.map(([f]) => f);
      const max = Math.max(most(points, keys), 1);
      text(top, isRate ? `${rate(max)}/s` : num(max));
      draw(lines, points, keys, max, W, H);
      if (cursor.getAttribute('visibility') === 'hidden') leave();
    },
  };
}

/** pointOf makes a chart's point of a group's sample. */
export function pointOf(sample, g) {
  return {
    at: Date.parse(sample.at), in: g.in_rate ?? -1, out: g.out_rate ?? -1, lag: g.lag ?? -1, pending: g.pending, retrying: g.retry + g.retrying, dead: g.dead,
  };
}

/** follow adds a sample's point, keeps as many as the server does, and says whether it was new. */
export function follow(points, sample, g) {
  const p = pointOf(sample, g);
  if (points.length && p.at <= points[points.length - 1].at) return false;
  points.push(p);
  if (points.length > 150) points.shift();
  return true;
}
