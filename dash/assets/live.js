// Live samples: server-sent events, polling where those do not come through. Held while rows are selected, a dialog is
// open, the tab is hidden, or somebody pressed the button.
import { $, text } from './dom.js';
import { get } from './api.js';

const PATIENCE = 8000; // without a first event in this time, the page polls

let want = null;      // { params, onSample }
let source = null, timer = null, polling = false, sinceFirst = null;
let byHand = false, selected = 0, dialog = false;
let interval = 2000;

export function setInterval_(ms) { interval = Math.max(ms, 1000); }

export function holding() {
  if (document.hidden) return 'hidden';
  if (byHand) return 'held';
  if (selected > 0) return 'held while rows are selected';
  if (dialog) return 'held';
  return '';
}

function show(kind, label) {
  const b = $('live');
  b.className = 'live ' + kind;
  text(b.querySelector('span'), label);
  b.setAttribute('aria-pressed', String(byHand));
}

/** watch gives every sample of a stream and group (or of all) to onSample, until the next watch or unwatch. */
export function watch(params, onSample) {
  close();
  $('live').hidden = false;
  want = { params, onSample };
  polling = false;
  update();
}

export function unwatch() { want = null; close(); $('live').hidden = true; }

export function setSelected(n) { if (n !== selected) { selected = n; update(); } }
export function setDialog(open) { if (open !== dialog) { dialog = open; update(); } }
export function toggle() { byHand = !byHand; update(); }

function close() {
  if (source) source.close();
  source = null;
  clearTimeout(timer);
  clearTimeout(sinceFirst);
}

function update() {
  const hold = holding();
  if (hold || !want) {
    close();
    if (want) show('held', hold === 'hidden' ? 'held' : hold);
    return;
  }
  if (polling) { if (!timer) poll(); else { clearTimeout(timer); poll(); } return; }
  if (!source) open();
}

function got(sample) {
  show(sample.error ? 'bad' : 'on', sample.error ? 'Redis is away' : polling ? 'polling' : 'live');
  const down = $('down');
  down.hidden = !sample.error;
  if (sample.error) text(down, `Redis does not answer: ${sample.error}. What is shown is from ${new Date(sample.at).toLocaleTimeString()}; it goes on by itself.`);
  if (want) want.onSample(sample);
}

function open() {
  show('', 'connecting');
  const q = new URLSearchParams(want.params);
  const mine = new EventSource(`api/live?${q}`);
  source = mine;
  sinceFirst = setTimeout(() => { if (source === mine) { close(); polling = true; update(); } }, PATIENCE);
  mine.addEventListener('sample', (e) => {
    if (source !== mine) return;
    clearTimeout(sinceFirst);
    got(JSON.parse(e.data));
  });
  mine.onerror = () => {
    if (source !== mine) return;
    show('bad', 'no answer');
    if (mine.readyState === EventSource.CLOSED) { // refused: it does not try again by itself
      close();
      polling = true;
      timer = setTimeout(poll, interval);
    }
  };
}

async function poll() {
  timer = null;
  const mine = want;
  if (!mine || holding()) return;
  try {
    const sample = await get('ls', mine.params);
    if (want === mine && !holding()) got(sample);
  } catch (err) {
    if (want === mine) show('bad', err.status === 403 ? 'refused' : 'no answer');
  }
  if (want === mine && !holding()) { clearTimeout(timer); timer = setTimeout(poll, interval); }
}

document.addEventListener('visibilitychange', update);
