-- group: makes sure that a group exists, in the main and in the retry stream, and is recorded. A group that vanished is
-- made again at its recorded position, at the head where nothing is recorded or the stream was replaced.
-- KEYS: 1 main, 2 retry, 3 groups, 4 stream meta
-- ARGV: 1 group, 2 position of a new group: 0, $, or an id, 3 start | again | create, 4 our format, 5 retention in ms,
--       'forever' or '' (leave it)
--   start = a subscription begins; again = one that runs misses it (a tombstone then ends it); create = an operator
-- returns: {what, position}: exists | created | remade (vanished) | after-removal (created over a tombstone) | removed
return guarded(function()
  local group = ARGV[1]
  local meta = redis.call('HMGET', KEYS[4], 'format', 'retain')
  local major = meta[1] and tonumber(string.match(meta[1], '^(%d+)') or '')
  if major and major > tonumber(ARGV[4]) then
    return redis.error_reply('FORMAT ' .. meta[1] .. ' is newer than ' .. ARGV[4])
  end
  local there, why = groups_of(KEYS[1])
  if why and string.find(why, 'WRONGTYPE', 1, true) then -- before anything is written
    error(string.format('%s (XINFO GROUPS %s)', why, KEYS[1]), 0)
  end
  unlock(KEYS[4])
  if not meta[1] then redis.call('HSET', KEYS[4], 'format', ARGV[4]) end
  if ARGV[5] ~= '' and meta[2] ~= ARGV[5] then
    redis.call('HSET', KEYS[4], 'retain', ARGV[5], 'by', 'option')
    meta[2] = ARGV[5]
  end

  local function make(stream, at)
    local r = redis.pcall('XGROUP', 'CREATE', stream, group, at, 'MKSTREAM')
    if type(r) == 'table' and r.err and not string.find(r.err, 'BUSYGROUP', 1, true)
      and not (stream == KEYS[2] and string.find(r.err, 'WRONGTYPE', 1, true)) then -- retries wait; the rest goes on
      error(r.err .. ' (XGROUP CREATE ' .. stream .. ')', 0)
    end
  end

  local t = now()
  local mark = redis.call('HGET', KEYS[3], group)
  local removed = mark and string.sub(mark, 1, 1) == 'x'
  local pos = mark and not removed and string.match(mark, '^(%d+%-%d+)|')

  -- Our first group on a stream that others already use as a history, or at its tail: nothing may be compacted away.
  local function keep(at)
    if meta[2] then return end
    for _, v in ipairs(redis.call('HVALS', KEYS[3])) do
      if string.sub(v, 1, 1) ~= 'x' then return end
    end
    local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
    if at == '$' or first and tonumber((split(first[1]))) < t - 3600000 then
      redis.call('HSET', KEYS[4], 'retain', 'forever', 'by', 'found')
    end
  end

  for _, g in ipairs(there or {}) do
    if g.name == group then
      if not pos then
        keep(g.last)
        redis.call('HSET', KEYS[3], group, position(KEYS[1], g) .. '|' .. int(t))
      end
      make(KEYS[2], '0')
      return {'exists', g.last}
    end
  end
  if removed and ARGV[3] == 'again' then return {'removed', ''} end

  local what, at = 'created', ARGV[2]
  if pos then
    what, at = 'remade', pos
    local info = redis.pcall('XINFO', 'STREAM', KEYS[1])
    local newest = not info.err and pairs_of(info)['last-generated-id'] or '0-0'
    if compare(newest, pos) < 0 then at = '0' end -- ids went back: another stream stands here
  elseif ARGV[3] == 'again' then
    what, at = 'remade', '0'
  else
    if removed then what = 'after-removal' end
    keep(at)
  end
  make(KEYS[1], at)
  make(KEYS[2], '0')
  local stands = at
  for _, g in ipairs(groups_of(KEYS[1]) or {}) do
    if g.name == group then stands = g.last end
  end
  redis.call('HSET', KEYS[3], group, stands .. '|' .. int(t))
  return {what, stands}
end)
