// Questions to the JSON API beneath. Addresses are relative: they work under any prefix.

export class Failure extends Error {
  constructor(status, body) {
    super((body && body.error) || `status ${status}`);
    this.status = status;
    this.hint = (body && body.hint) || '';
    this.unreachable = status === 0 || status === 503 || status === 502;
  }
}

async function ask(path, init) {
  let res;
  try {
    res = await fetch(path, { credentials: 'same-origin', cache: 'no-store', ...init });
  } catch (err) {
    if (err.name === 'AbortError') throw err;
    throw new Failure(0, { error: 'The dashboard itself does not answer.', hint: 'Is its process running?' });
  }
  let body = null;
  try { body = await res.json(); } catch { /* a proxy's page */ }
  if (!res.ok || body === null) throw new Failure(res.status, body);
  return body;
}

export function get(path, params, signal) {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(params || {})) if (v !== '' && v !== null && v !== undefined && v !== false) q.set(k, v === true ? '1' : v);
  return ask(`api/${path}?${q}`, { signal });
}

export function post(path, body) {
  return ask(`api/${path}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
}
