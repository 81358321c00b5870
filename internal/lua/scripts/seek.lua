-- seek: moves a group to another place in the stream's history; refused while it has entries pending there.
-- KEYS: 1 main, 2 groups
-- ARGV: 1 group, 2 position: 0, $, or the id after which to read
-- returns: {what, position}: moved | pending | missing | trimmed (history before the first entry left is gone)
return guarded(function()
  local group, at = ARGV[1], ARGV[2]
  local g
  for _, x in ipairs(groups_of(KEYS[1]) or {}) do
    if x.name == group then g = x end
  end
  if not g then return {'missing', ''} end
  if g.pending > 0 then return {'pending', ''} end
  if at ~= '0' and at ~= '$' then
    local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
    local info = pairs_of(redis.call('XINFO', 'STREAM', KEYS[1]))
    local added, behind = info['entries-added'], after(at)
    if (not added or added > info['length']) and (not first or behind and compare(behind, first[1]) < 0) then
      if compare(at, info['last-generated-id']) < 0 then return {'trimmed', first and first[1] or ''} end
    end
  end
  redis.call('XGROUP', 'SETID', KEYS[1], group, at)
  for _, x in ipairs(groups_of(KEYS[1])) do
    if x.name == group then g = x end
  end
  local mark = redis.call('HGET', KEYS[2], group) or ''
  redis.call('HSET', KEYS[2], group, g.last .. '|' .. (string.match(mark, '|(%d+)') or int(now())))
  return {'moved', g.last}
end)
