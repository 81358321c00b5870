-- promote: moves what is due from a parked set to a stream, in bounded steps. It pauses while the group has plenty to read.
-- What cannot be moved is due again a minute later, so that it does not stand before what can.
-- KEYS: 1 due, 2 parked, 3 target stream, 4 dlq for what cannot be read, 5 group meta
-- ARGV: 1 group ('' = published with a delay: the target is the main stream), 2 most entries, 3 most bytes
-- returns: {moved, missing, left, mismatch, lines…}: missing = members whose value is gone; left 1 = more is due now;
--   mismatch 1 = members and values disagree in number; lines: dead malformed <dlq id> <member> | error <text>
return guarded(function()
  local group, limit, bytes = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
  local t = now()
  if group ~= '' then
    local p = redis.pcall('XPENDING', KEYS[3], group)
    if not p.err then
      local waiting = redis.call('XLEN', KEYS[3]) - tonumber(p[1])
      local held = redis.call('HGET', KEYS[5], 'held') == '1'
      if waiting > 2000 and not held then
        redis.call('HSET', KEYS[5], 'held', '1')
        held = true
      elseif waiting < 1000 and held then
        redis.call('HDEL', KEYS[5], 'held')
        held = false
      end
      if held then return {0, 0, 0, 0} end
    end
  end
  local moved, missing, out = 0, 0, {}

  local function one(member, at)
    local v = redis.call('HGET', KEYS[2], member)
    if not v then
      redis.call('ZREM', KEYS[1], member)
      missing = missing + 1
      return nil
    end
    bytes = bytes - #v
    local f, said = unpacked(v), nil
    if f and #f / 2 <= WIDE + 20 then
      if group == '' and string.sub(member, 1, 2) == 'd-' then f = rewrite(f, {oid = member, due = int(tonumber(at))}) end
      append(KEYS[3], f)
      moved = moved + 1
    else
      local id = append(KEYS[4], {'raw', v, 'member', member, 'reason', 'malformed'})
      said = 'dead malformed ' .. id .. ' ' .. member
    end
    redis.call('ZREM', KEYS[1], member)
    redis.call('HDEL', KEYS[2], member)
    return said
  end

  local skip = 0
  while limit > 0 and bytes > 0 do
    local list = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', int(t), 'WITHSCORES', 'LIMIT', skip, math.min(limit, 50))
    if not list[1] then break end
    for i = 1, #list, 2 do
      local member = list[i]
      if limit <= 0 or bytes <= 0 then break end
      limit = limit - 1
      local ok, res = pcall(one, member, list[i + 1])
      if not ok then
        local put = redis.pcall('ZADD', KEYS[1], 'XX', int(t + 60000), member)
        if type(put) == 'table' and put.err then skip = skip + 1 end -- a full memory: the walk goes past it
        res = 'error ' .. message(res)
      end
      if res then out[#out + 1] = res end
    end
  end
  local left = redis.call('ZCOUNT', KEYS[1], '-inf', int(t)) > skip and 1 or 0
  local mismatch = redis.call('ZCARD', KEYS[1]) ~= redis.call('HLEN', KEYS[2]) and 1 or 0
  return {moved, missing, left, mismatch, unpack(out)}
end)
