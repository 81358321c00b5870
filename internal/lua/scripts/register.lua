-- register: a consumer's lease record, before its first read. A name is registered once.
-- KEYS: 1 workers, 2 group meta
-- ARGV: 1 consumer, 2 visibility in ms, 3 version
-- returns: 'ok', or 'taken' when the name is known
return guarded(function()
  if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then return 'taken' end
  unlock(KEYS[1])
  local vis = tonumber(ARGV[2])
  redis.call('HSET', KEYS[1], ARGV[1], record({vis = vis, hb = now(), ver = ARGV[3], state = 'live', suspect = ''}))
  local m = redis.call('HMGET', KEYS[2], 'minvis', 'maxvis')
  local least, most = tonumber(m[1] or ''), tonumber(m[2] or '')
  if not least or vis < least then redis.call('HSET', KEYS[2], 'minvis', ARGV[2]) end
  if not most or vis > most then redis.call('HSET', KEYS[2], 'maxvis', ARGV[2]) end
  return 'ok'
end)
