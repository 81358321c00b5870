-- What the scripts share; stands before each of them. Numbers that count are below 2^53; entry ids never become numbers.

local WIDE = 3900 -- fields; unpack can pass no more than 8,000 values
local STEP = 8 -- entries or values in one step of a walk: what comes behind small ones may be large
local SUSPECT = 2 -- lost leases in a row from which on a message runs alone

local function now()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function int(n) return string.format('%.0f', n) end

-- Errors: code first. Servers up to 6.2 wrap what redis.call raises, so it is caught and unwrapped here.
local function message(e)
  if type(e) == 'table' then e = e.err or 'ERR unknown' end
  return tostring(e)
end

-- Runs f, turning an error that it raises into an error reply.
local function guarded(f)
  local ok, res = pcall(f)
  if ok then return res end
  return redis.error_reply(message(res))
end

-- A harmless write that a full memory allows: what follows in the same script is then allowed too. Only for the small
-- fixed-size marks without which a full server could never be drained.
local function unlock(hash) redis.call('HDEL', hash, '') end

-- Counters count only when they are 1 to 9 digits, and so they stop there.
local function counter(v)
  if v and #v <= 9 and string.match(v, '^%d+$') then return tonumber(v) end
  return 0
end
local function onemore(v) return math.min(counter(v) + 1, 999999999) end

-- Entry ids compare as decimal strings.
local function split(id) return string.match(id, '^(%d+)%-(%d+)$') end
local function digits(a, b)
  if #a ~= #b then return #a < #b and -1 or 1 end
  if a == b then return 0 end
  return a < b and -1 or 1
end
local function compare(a, b)
  local am, as = split(a)
  local bm, bs = split(b)
  local c = digits(am, bm)
  if c ~= 0 then return c end
  return digits(as, bs)
end
local function step(s, up) -- a decimal string one up or down; nil below zero
  local t, i = {string.byte(s, 1, -1)}, #s
  local from, to = up and 57 or 48, up and 48 or 57
  while i >= 1 and t[i] == from do
    t[i] = to
    i = i - 1
  end
  if i == 0 then
    if not up then return nil end
    return '1' .. string.rep('0', #s)
  end
  t[i] = t[i] + (up and 1 or -1)
  local r = string.gsub(string.char(unpack(t)), '^0+(%d)', '%1')
  return r
end
local LAST = '18446744073709551615'
local function after(id) -- nil behind the last possible id
  local ms, seq = split(id)
  if seq == LAST then return ms ~= LAST and step(ms, true) .. '-0' or nil end
  return ms .. '-' .. step(seq, true)
end
local function before(id)
  local ms, seq = split(id)
  local s = step(seq, false)
  if s then return ms .. '-' .. s end
  ms = step(ms, false)
  if not ms then return '0-0' end
  return ms .. '-' .. LAST
end

-- Fields are flat arrays: name, value, name, value …; the first of a name counts.
local function field(f, name)
  for i = 1, #f, 2 do
    if f[i] == name then return f[i + 1] end
  end
end
local ORDER = {'rc', 'lost', 'losses', 'cut', 'oid', 'from', 'redriven', 'due', 'err', 'reason'}
-- A copy with the fields of set replaced (a string) or left out (false); all others keep order and bytes.
local function rewrite(f, set)
  local out, n = {}, 0
  for i = 1, #f, 2 do
    if set[f[i]] == nil then
      out[n + 1], out[n + 2] = f[i], f[i + 1]
      n = n + 2
    end
  end
  for _, name in ipairs(ORDER) do
    if set[name] then
      out[n + 1], out[n + 2] = name, set[name]
      n = n + 2
    end
  end
  return out
end
-- The stable id: what the first publish got.
local function stable(f, id)
  local oid = field(f, 'oid')
  if oid and oid ~= '' then return oid end
  return id
end

-- Parked values: a version byte, then netstrings.
local function pack(f)
  local out = {'\1'}
  for i = 1, #f do out[i + 1] = #f[i] .. ':' .. f[i] .. ',' end
  return table.concat(out)
end
local function unpacked(s)
  if string.byte(s, 1) ~= 1 then return nil end
  local out, n, at = {}, 0, 2
  while at <= #s do
    local colon = string.find(s, ':', at, true)
    if not colon or colon - at > 10 or not string.match(string.sub(s, at, colon - 1), '^%d+$') then return nil end
    local len = tonumber(string.sub(s, at, colon - 1))
    if string.sub(s, colon + len + 1, colon + len + 1) ~= ',' then return nil end
    n = n + 1
    out[n] = string.sub(s, colon + 1, colon + len)
    at = colon + len + 2
  end
  if n == 0 or n % 2 == 1 then return nil end
  return out
end
local function size(f)
  local n = 0
  for i = 1, #f do n = n + #f[i] end
  return n
end

-- The lease record of a consumer: visibility|heartbeat|version|state|suspect, state live, dead or foreign.
local function lease(r)
  if not r then return nil end
  local v, hb, ver, st, sus = string.match(r, '^(%d+)|(%d+)|([^|]*)|(%a+)|(.*)$')
  if not v then return {vis = 60000, hb = 0, ver = '', state = 'foreign', suspect = ''} end
  return {vis = tonumber(v), hb = tonumber(hb), ver = ver, state = st, suspect = sus}
end
local function record(l)
  return int(l.vis) .. '|' .. int(l.hb) .. '|' .. l.ver .. '|' .. l.state .. '|' .. l.suspect
end

local function entry(stream, id)
  local r = redis.call('XRANGE', stream, id, id)
  if r[1] then return r[1][2] end
end

-- A call whose error names the key.
local function call(cmd, key, ...)
  local r = redis.pcall(cmd, key, ...)
  if type(r) == 'table' and r.err then error(r.err .. ' (' .. cmd .. ' ' .. key .. ')', 0) end
  return r
end

local function append(stream, f) return call('XADD', stream, '*', unpack(f)) end

-- The pieces of every move. k names the keys, c the group, src is m (main) or r (retry).
local function bury(k, f, reason, set)
  set.reason = reason
  if #f / 2 > WIDE then
    local kept = {'packed', pack(f)}
    set.oid, set.reason = set.oid or field(f, 'oid'), 'too-wide'
    return append(k.dlq, rewrite(kept, set)), 'too-wide'
  end
  return append(k.dlq, rewrite(f, set)), reason
end

-- Parks fields under the name of their source; a taken name (a replay, a recreated group) gets the first free suffix.
local function park(parked, due, member, f, at)
  local name, n = member, 1
  local value = pack(f)
  while call('HSETNX', parked, name, value) == 0 do
    n = n + 1
    name = member .. '/' .. n
  end
  local ok, err = pcall(call, 'ZADD', due, int(at), name)
  if not ok then
    redis.call('HDEL', parked, name)
    error(message(err), 0)
  end
  return name
end

local function ack(k, group, src, id)
  if src == 'r' then
    local n = redis.call('XACK', k.r, group, id)
    redis.call('XDEL', k.r, id)
    return n
  end
  return redis.call('XACK', k.m, group, id)
end

local function mine(k, group, src, id, consumer)
  return redis.call('XPENDING', k[src], group, id, id, 1, consumer)[1] ~= nil
end

-- Gives an entry to the group's retry stream; too wide a one can only be dead.
local function hand(k, f, set)
  if #f / 2 > WIDE then
    local id = bury(k, f, 'too-wide', set)
    return 'dead too-wide ' .. id
  end
  append(k.r, rewrite(f, set))
  return nil
end

-- What a group still needs: the id from which on nothing may be trimmed, by its oldest pending and last delivered entry;
-- nil when it has read and acked the last possible id. And the position from which it could be made again.
local function pairs_of(flat)
  local m = {}
  for i = 1, #flat, 2 do m[flat[i]] = flat[i + 1] end
  return m
end
local function groups_of(stream)
  local r = redis.pcall('XINFO', 'GROUPS', stream)
  if type(r) ~= 'table' or r.err then return nil, r and r.err end
  local list = {}
  for i, g in ipairs(r) do
    local p = pairs_of(g)
    local last = p['last-delivered-id']
    if not string.find(last, '-', 1, true) then last = last .. '-0' end -- the embedded server keeps what it was given
    list[i] = {name = p['name'], last = last, pending = p['pending']}
  end
  return list
end
local function need(stream, g)
  local first = after(g.last)
  if g.pending and g.pending > 0 then
    local p = redis.call('XPENDING', stream, g.name)
    if p[2] and (not first or compare(p[2], first) < 0) then first = p[2] end
  end
  return first
end
local function position(stream, g)
  local n = need(stream, g)
  return n and before(n) or g.last
end

-- Walks the entries of a range in steps that grow while bodies are small; true when the end was reached, and where it stood.
local function walk(stream, from, to, limit, bytes, f)
  local ask = 2
  if not from then return true end
  while limit > 0 and bytes > 0 do
    local n, got = math.min(ask, limit), 0
    local list = redis.call('XRANGE', stream, from, to, 'COUNT', n)
    for _, e in ipairs(list) do
      got = got + size(e[2])
      f(e[1])
    end
    if #list > 0 then from = after(list[#list][1]) end
    limit, bytes = limit - #list, bytes - got
    if #list < n or not from then return true, from end
    ask = got < 16384 and math.min(ask * 2, STEP) or 1
  end
  return false, from
end

-- Walks a hash from a cursor in steps that grow while values are small; the next cursor, '0' at the end or when f says stop.
local function scan(hash, cursor, limit, bytes, f, match)
  local ask = 1
  while limit > 0 and bytes > 0 do
    local n, got = math.min(ask, limit), 0
    local r = redis.call('HSCAN', hash, cursor, 'COUNT', n, 'MATCH', match or '*')
    cursor = r[1]
    for i = 1, #r[2], 2 do
      got = got + #r[2][i + 1]
      if f(r[2][i], r[2][i + 1]) then return '0' end
    end
    if cursor == '0' then break end
    limit, bytes = limit - n, bytes - got
    ask = got < 16384 and math.min(ask * 2, STEP) or 1
  end
  return cursor
end
