-- publish: a delayed or deduplicated publish.
-- KEYS: 1 main, 2 due, 3 parked, 4 sent marker (main again when there is no dedupe id)
-- ARGV: 1 dedupe window in ms ('' = no dedupe), 2 delay in ms, 3 due at ms ('' = by the delay), 4 random hex, 5 '1' = WAIT follows ('' = not),
--       6… fields
-- returns: {id, 1 when a publish before had the dedupe id}
return guarded(function()
  local dedupe = ARGV[1] ~= ''
  if dedupe then
    local id = redis.call('GET', KEYS[4])
    if id then
      if ARGV[5] ~= '' then -- WAIT looks at what its own connection has written: so write, and change nothing
        local left = redis.call('PTTL', KEYS[4])
        if left > 0 then redis.call('PEXPIRE', KEYS[4], left) end
      end
      return {id, 1}
    end
  end
  local t = now()
  local at = ARGV[3] ~= '' and tonumber(ARGV[3]) or t + tonumber(ARGV[2])
  local f = {unpack(ARGV, 6)}
  local id
  if at > t then
    id = 'd-' .. int(t) .. '-' .. ARGV[4]
    id = park(KEYS[3], KEYS[2], id, f, at)
  else
    id = append(KEYS[1], f)
  end
  if dedupe then
    local r = redis.pcall('SET', KEYS[4], id, 'PX', ARGV[1])
    if type(r) == 'table' and r.err then -- nothing may stand without its marker
      if at > t then
        redis.call('ZREM', KEYS[2], id)
        redis.call('HDEL', KEYS[3], id)
      else
        redis.call('XDEL', KEYS[1], id)
      end
      return redis.error_reply(r.err)
    end
  end
  return {id, 0}
end)
