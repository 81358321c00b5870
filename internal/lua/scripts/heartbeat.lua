-- heartbeat: the lease of all that a consumer holds, on one key alone, so that it goes on while a slot migrates.
-- KEYS: 1 workers
-- ARGV: 1 consumer
-- returns: 'ok', or 'gone' when the record is missing, marked dead or foreign
return guarded(function()
  local l = lease(redis.call('HGET', KEYS[1], ARGV[1]))
  if not l or l.state ~= 'live' then return 'gone' end
  unlock(KEYS[1])
  l.hb = now()
  redis.call('HSET', KEYS[1], ARGV[1], record(l))
  return 'ok'
end)
