-- compact: trims what every group, foreign ones too, is done with, in bounded steps; the floor is found afresh each time.
-- KEYS: 1 main, 2 groups, 3 stream meta
-- ARGV: 1 most entries to trim, 2 'dry' to look only, 3 'now' to leave out the waiting time after a group was made
-- returns: {state, removed, floor, left, groups that hold the floor…}
--   state ok | none (no stream or no group) | young | forever | missing (then the group, and nothing is trimmed)
--   left 1 = more could be trimmed now
return guarded(function()
  local t = now()
  local list = groups_of(KEYS[1])
  if not list or #list == 0 then return {'none', 0, '', 0} end
  local function mark() -- only after the first trim, so that a full memory does not refuse it
    if ARGV[2] == 'dry' then return end
    unlock(KEYS[3])
    redis.call('HSET', KEYS[3], 'compacted', int(t))
  end
  local retain = redis.call('HGET', KEYS[3], 'retain') or '0'
  if retain == 'forever' then
    mark()
    return {'forever', 0, '', 0}
  end

  local there = {}
  for _, g in ipairs(list) do there[g.name] = true end
  local flat, newest = redis.call('HGETALL', KEYS[2]), 0
  for i = 1, #flat, 2 do
    local _, made = string.match(flat[i + 1], '^(%d+%-%d+)|(%d+)')
    if made then -- not a tombstone
      if not there[flat[i]] then
        mark()
        return {'missing', 0, '', 0, flat[i]}
      end
      newest = math.max(newest, tonumber(made))
    end
  end
  if ARGV[3] ~= 'now' and math.abs(t - newest) < 300000 and redis.call('XLEN', KEYS[1]) < 100000 then
    mark()
    return {'young', 0, '', 0}
  end

  -- floor: the least that any group needs; ceiling: up to here every group has been given all. The last possible entry stays.
  local floor, ceiling, holders, last = nil, nil, {}, LAST .. '-' .. LAST
  for _, g in ipairs(list) do
    local n = need(KEYS[1], g) or last
    local c = floor and compare(n, floor) or -1
    if c < 0 then floor, holders = n, {} end
    if c <= 0 then holders[#holders + 1] = g.name end
    local top = after(g.last) or last
    if not ceiling or compare(top, ceiling) < 0 then ceiling = top end
  end
  local keep = tonumber(retain) or 0
  if keep > 0 then
    local young = keep < t and int(t - keep) .. '-0' or '0-1' -- below 0-1 there is no range
    if compare(young, floor) < 0 then floor, holders = young, {} end
    if compare(young, ceiling) < 0 then ceiling = young end
  end
  local limit = tonumber(ARGV[1])
  if ARGV[2] == 'dry' then
    local n = #redis.call('XRANGE', KEYS[1], '-', '(' .. floor, 'COUNT', 1)
    return {'ok', 0, floor, n, unpack(holders)}
  end

  local removed = redis.call('XTRIM', KEYS[1], 'MINID', '~', floor, 'LIMIT', limit)
  local left = removed > limit - 200 and 1 or 0 -- it stops before the node that would pass the limit
  if left == 0 then -- whole nodes are gone; what is below the floor in the last one is a small exact step
    removed = removed + redis.call('XTRIM', KEYS[1], 'MINID', floor)
  end
  -- Above a floor that one old entry pins: only what every group has been given and has pending no more.
  if left == 0 and compare(floor, ceiling) < 0 then
    local from = redis.call('HGET', KEYS[3], 'cursor') or floor
    if compare(from, floor) < 0 or compare(from, ceiling) >= 0 then from = floor end
    -- A walk reads all that lies there, so a large one is not begun again until there is half as much more, or for ten minutes.
    local length = redis.call('XLEN', KEYS[1])
    if from == floor and length >= 1000 and ARGV[3] ~= 'now' then
      local had, at = string.match(redis.call('HGET', KEYS[3], 'walked') or '', '^(%d+)|(%d+)$')
      if had and length * 2 < had * 3 and math.abs(t - at) < 600000 then
        mark()
        return {'ok', removed, floor, 0, unpack(holders)}
      end
    end
    local window, busy, ids = {}, {}, {}
    local through, stood = walk(KEYS[1], from, '(' .. ceiling, 100, 262144, function(id) window[#window + 1] = id end)
    if #window > 0 then
      for _, g in ipairs(list) do
        for _, p in ipairs(redis.call('XPENDING', KEYS[1], g.name, window[1], window[#window], 1000)) do busy[p[1]] = true end
      end
      for _, id in ipairs(window) do
        if not busy[id] then ids[#ids + 1] = id end
      end
      if #ids > 0 then removed = removed + redis.call('XDEL', KEYS[1], unpack(ids)) end
    end
    through = through or compare(stood, ceiling) >= 0 -- a full window that ends with the last entry; else the next step would begin anew
    if not through then left = 1 end
    redis.call('HSET', KEYS[3], 'cursor', through and floor or stood)
    if through and length >= 1000 then redis.call('HSET', KEYS[3], 'walked', redis.call('XLEN', KEYS[1]) .. '|' .. int(t)) end
  end
  mark()
  return {'ok', removed, floor, left, unpack(holders)}
end)
