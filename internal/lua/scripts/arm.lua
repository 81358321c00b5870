-- arm: names the suspect that a consumer is about to run alone; only into a live record.
-- KEYS: 1 workers
-- ARGV: 1 consumer, 2 entry id in the retry stream
-- returns: 'ok', or 'gone'
return guarded(function()
  local l = lease(redis.call('HGET', KEYS[1], ARGV[1]))
  if not l or l.state ~= 'live' then return 'gone' end
  unlock(KEYS[1])
  l.suspect = ARGV[2]
  redis.call('HSET', KEYS[1], ARGV[1], record(l))
  return 'ok'
end)
