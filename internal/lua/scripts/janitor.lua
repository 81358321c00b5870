-- janitor: parked values that no due time names (an eviction, a restore, a hand) become due now; one bounded step of a walk.
-- KEYS: 1 due, 2 parked
-- ARGV: 1 cursor (0 = begin), 2 how many to look at, 3 most bytes
-- returns: {next cursor, orphans found}
return guarded(function()
  local found, t = 0, int(now())
  local cursor = scan(KEYS[2], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), function(member)
    if not redis.call('ZSCORE', KEYS[1], member) then
      call('ZADD', KEYS[1], t, member)
      found = found + 1
    end
  end)
  return {cursor, found}
end)
