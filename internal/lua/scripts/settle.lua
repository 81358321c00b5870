-- settle: ends deliveries under their consumer's name. Each is handled by itself: still pending for this consumer, copied
-- forward first, then acked behind.
-- KEYS: 1 main, 2 retry, 3 group due, 4 group parked, 5 dlq, 6… seen markers
-- ARGV: 1 group, 2 consumer, 3 most parked (0 = no cap), then eight a delivery:
--       verb, source m|r, entry id, delay in ms, limit, text, index of the seen marker (0 = none), extra
--   ack      extra = marker's lifetime in ms
--   fail     limit = max retries (-1 = for ever), text = error; extra = packed fields, used when the entry was deleted
--   snooze   extra likewise
--   bury     text = error, limit = 1 when it counts as a failure, extra = reason, space, packed fields
--   release  extra likewise
--   cut      a shutdown cut the handler; limit = most cuts; extra likewise
-- returns: a line a delivery: acked | parked <member> | released | dead <reason> <dlq id> | lost | gone | error <text>
--   lost = not pending for this consumer; gone = pending, but deleted by others and no fields given
return guarded(function()
  local k = {m = KEYS[1], r = KEYS[2], dlq = KEYS[5]}
  local group, consumer, cap = ARGV[1], ARGV[2], tonumber(ARGV[3])

  local function one(i)
    local verb, src, id, delay, limit, text, marker, extra = unpack(ARGV, i, i + 7)
    local asked, held = pcall(mine, k, group, src, id, consumer)
    if verb == 'ack' then
      if asked and held then ack(k, group, src, id) end
      if marker ~= '0' then -- also when nothing was acked: the work is done
        redis.call('XACK', k.m, group, '0-0') -- acks nothing, but lets the marker pass in a full memory
        redis.call('SET', KEYS[5 + tonumber(marker)], '1', 'PX', extra)
      end
      if not asked then error(held, 0) end
      return held and 'acked' or 'lost'
    end
    if not asked then error(held, 0) end
    if not held then return 'lost' end
    local reason
    if verb == 'bury' then
      reason, extra = string.match(extra, '^(%S+) ?(.*)$')
    end
    local f = entry(k[src], id)
    if not f then
      f = extra ~= '' and unpacked(extra)
      if not f then return 'gone' end
    end
    local set = {oid = stable(f, id)}

    local function dead(why)
      local at, said = bury(k, f, why, set)
      ack(k, group, src, id)
      return 'dead ' .. said .. ' ' .. at
    end

    if verb == 'release' or verb == 'cut' then
      if verb == 'cut' then
        local cut = onemore(field(f, 'cut'))
        set.cut = int(cut)
        if cut > tonumber(limit) then return dead('cut') end
      end
      local said = hand(k, f, set)
      ack(k, group, src, id)
      return said or 'released'
    end
    if verb == 'bury' then
      if text ~= '' then set.err = text end
      if limit == '1' then set.rc = int(onemore(field(f, 'rc'))) end
      return dead(reason)
    end
    set.lost = false
    if verb == 'fail' then
      local rc = onemore(field(f, 'rc'))
      set.rc, set.err = int(rc), text
      local max = tonumber(limit)
      if max >= 0 and rc > max then return dead('retries') end
    end
    if #f / 2 > WIDE then return dead('too-wide') end
    if verb == 'fail' and cap > 0 and redis.call('HLEN', KEYS[4]) >= cap then return dead('overflow') end
    local member = park(KEYS[4], KEYS[3], src .. '/' .. id, rewrite(f, set), now() + tonumber(delay))
    ack(k, group, src, id)
    return 'parked ' .. member
  end

  local out = {}
  for i = 4, #ARGV, 8 do
    local ok, res = pcall(one, i)
    out[#out + 1] = ok and res or 'error ' .. message(res)
  end
  return out
end)
