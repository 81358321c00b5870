-- drop: removes a group, its retry stream and parked set, and leaves a tombstone. Refused while dead letters exist, and
-- while anything waits or is held unless forced.
-- KEYS: 1 main, 2 retry, 3 group due, 4 group parked, 5 dlq, 6 groups, 7 workers, 8 paused, 9 group meta
-- ARGV: 1 group, 2 'force' or ''
-- returns: {what, dead, pending, retry, retrying, lag}: removed | held | missing; lag 0 or 1 (at least one unread)
return guarded(function()
  local group = ARGV[1]
  local mark = redis.call('HGET', KEYS[6], group)
  local g
  for _, x in ipairs(groups_of(KEYS[1]) or {}) do
    if x.name == group then g = x end
  end
  local dead = redis.call('XLEN', KEYS[5])
  if not g and (not mark or string.sub(mark, 1, 1) == 'x') and dead == 0 then return {'missing', 0, 0, 0, 0, 0} end
  local retry, parked = redis.call('XLEN', KEYS[2]), redis.call('HLEN', KEYS[4])
  local pending = g and g.pending or 0
  local unread = g and after(g.last)
  local lag = unread and #redis.call('XRANGE', KEYS[1], unread, '+', 'COUNT', 1) or 0
  if dead > 0 or ARGV[2] ~= 'force' and pending + retry + parked + lag > 0 then
    return {'held', dead, pending, retry, parked, lag}
  end
  unlock(KEYS[6]) -- a group that holds a full memory's messages must be removable
  redis.call('HSET', KEYS[6], group, 'x|' .. int(now()))
  if g then redis.call('XGROUP', 'DESTROY', KEYS[1], group) end
  redis.call('UNLINK', KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[7], KEYS[8], KEYS[9])
  return {'removed', dead, pending, retry, parked, lag}
end)
