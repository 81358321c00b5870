-- cancel: takes a delayed message back, and its publish-dedupe marker when that still names it.
-- KEYS: 1 due, 2 parked, 3 sent marker (parked again where there is no dedupe id)
-- ARGV: 1 member
-- returns: 1, or 0 when it is not there (any more)
return guarded(function()
  local there = redis.call('HDEL', KEYS[2], ARGV[1])
  redis.call('ZREM', KEYS[1], ARGV[1])
  if there == 1 and KEYS[3] ~= KEYS[2] and redis.pcall('GET', KEYS[3]) == ARGV[1] then redis.call('DEL', KEYS[3]) end
  return there
end)
