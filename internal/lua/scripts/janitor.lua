-- janitor: parked values that no due time names (an eviction, a restore, a hand) become due now; one bounded step of a walk.
-- KEYS: 1 due, 2 parked
-- ARGV: 1 cursor (0 = begin), 2 how many to look at
-- returns: {next cursor, orphans found}
return guarded(function()
  local r = redis.call('HSCAN', KEYS[2], ARGV[1], 'COUNT', ARGV[2])
  local found, t = 0, int(now())
  for i = 1, #r[2], 2 do
    if not redis.call('ZSCORE', KEYS[1], r[2][i]) then
      call('ZADD', KEYS[1], t, r[2][i])
      found = found + 1
    end
  end
  return {r[1], found}
end)
