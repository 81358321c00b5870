-- tick: once a second. Heartbeat, pause flag, missing keys or groups, what is due; and, when no other worker just did it,
-- the sweep: judges continuity, marks silent consumers dead, enters unknown owners, records the group's position.
-- KEYS: 1 main, 2 retry, 3 workers, 4 paused, 5 groups, 6 group meta, 7 group due, 8 stream due, 9 stream meta,
--       10 group parked, 11 stream parked
-- ARGV: 1 group, 2 consumer ('' = none), 3 sweep interval in ms, 4 processed, 5 failed, 6 dead: what to add to the totals
-- returns: {beat, now, least visibility, pause flag, state, due, delayed due, compacted at, dead consumers…}
--   beat ok | gone | none; state ok | no-stream | no-group | no-retry | removed; compacted at 0 = never
return guarded(function()
  local group, consumer = ARGV[1], ARGV[2]
  local t = now()
  local beat = 'none'
  unlock(KEYS[3])
  if consumer ~= '' then
    local l = lease(redis.call('HGET', KEYS[3], consumer))
    beat = 'gone'
    if l and l.state == 'live' then
      beat, l.hb = 'ok', t
      redis.call('HSET', KEYS[3], consumer, record(l))
    end
  end

  local state, last = 'ok', nil
  local list = groups_of(KEYS[1])
  if not list then
    state = 'no-stream'
  else
    state = 'no-group'
    for _, g in ipairs(list) do
      if g.name == group then state, last = 'ok', g end
    end
  end
  if state == 'ok' then
    local r = redis.pcall('XPENDING', KEYS[2], group)
    -- a key of another type stays as it is: the main stream is read meanwhile
    if r.err and not string.find(r.err, 'WRONGTYPE', 1, true) then state = 'no-retry' end
  else
    local mark = redis.call('HGET', KEYS[5], group)
    if mark and string.sub(mark, 1, 1) == 'x' then state = 'removed' end
  end

  local meta = redis.call('HMGET', KEYS[6], 'swept', 'minvis', 'maxvis', 'processed', 'failed', 'dead')
  local swept, least = tonumber(meta[1] or ''), tonumber(meta[2] or '')
  local interval = tonumber(ARGV[3])
  if least then interval = math.min(interval, math.floor(least / 4)) end

  local dead = {}
  if not swept or t < swept or t - swept >= interval * 0.8 then
    -- Nobody ages while nobody swept: a gap either way moves every heartbeat, less one interval.
    local gap, credit = swept and t - swept or 0, 0
    if not swept or math.abs(gap) > 3 * interval then
      credit = gap - (gap > 0 and interval or 0)
    end
    -- An owner that the hash does not know may have the largest visibility ever registered: its record may be what was lost.
    local all, known, largest = {}, {}, tonumber(meta[3] or '') or 0
    least = nil
    local flat = redis.call('HGETALL', KEYS[3])
    for i = 1, #flat, 2 do
      local l = lease(flat[i + 1])
      all[#all + 1] = {flat[i], l}
      known[flat[i]] = true
      if l.state == 'live' then
        largest = math.max(largest, l.vis)
        least = math.min(least or l.vis, l.vis)
      end
    end
    if largest == 0 then largest = 60000 end
    local budget = 100
    for _, w in ipairs(all) do
      local name, l = w[1], w[2]
      local changed = false
      if l.state ~= 'dead' and name ~= consumer then
        if not swept then
          l.hb, changed = t, true
        elseif credit > 0 or l.hb > t then -- set back: what is not in the future was written since, and stays
          l.hb, changed = math.min(t, l.hb + credit), true
        end
        local vis = l.state == 'foreign' and math.max(largest, l.vis) or l.vis
        local grace = math.max(100, math.min(2000, math.floor(vis / 10)))
        if swept and t - l.hb > vis + grace and budget > 0 then
          budget = budget - 1
          l.state, changed = 'dead', true
          -- its only entry, in the retry stream, may be what killed it while it was read
          local r = redis.pcall('XPENDING', KEYS[2], group, '-', '+', 2, name)
          local m = redis.pcall('XPENDING', KEYS[1], group, '-', '+', 1, name)
          if not r.err and #r == 1 and (m.err or #m == 0) then l.suspect = r[1][1] end
        end
      end
      if changed then redis.call('HSET', KEYS[3], name, record(l)) end
      if l.state == 'dead' then dead[#dead + 1] = name end
    end
    -- At most 20 are named, where there are more from anywhere on: those that cannot be emptied hide no others.
    if #dead > 20 then
      local some = {}
      for i = 1, 20 do some[i] = dead[(t + i) % #dead + 1] end
      dead = some
    end
    -- Owners that the hash does not know (it was lost, or a late read ran) get a record and die of age like the others.
    for _, stream in ipairs({KEYS[1], KEYS[2]}) do
      local p = redis.pcall('XPENDING', stream, group)
      if not p.err and p[4] then
        for _, c in ipairs(p[4]) do
          if not known[c[1]] then
            known[c[1]] = true
            redis.call('HSET', KEYS[3], c[1], record({vis = largest, hb = t, ver = '', state = 'foreign', suspect = ''}))
          end
        end
      end
    end
    redis.call('HSET', KEYS[6], 'swept', int(t))
    if least then redis.call('HSET', KEYS[6], 'minvis', int(least)) else redis.call('HDEL', KEYS[6], 'minvis') end
    -- The position from which the group could be made again without losing anything.
    if last then
      local pos = position(KEYS[1], last)
      local mark = redis.call('HGET', KEYS[5], group)
      local was, created = string.match(mark or '', '^([^|]*)|(%d*)')
      if was ~= pos then redis.call('HSET', KEYS[5], group, pos .. '|' .. (created or int(t))) end
    end
  end

  if state ~= 'removed' then
    for i, name in ipairs({'processed', 'failed', 'dead'}) do
      if ARGV[3 + i] ~= '0' then
        local had = string.match(meta[3 + i] or '', '^%d+$') or '0' -- made no number by hand: it begins anew
        redis.call('HSET', KEYS[6], name, int(tonumber(had) + tonumber(ARGV[3 + i])))
      end
    end
  end

  local flag = redis.pcall('GET', KEYS[4]) -- of another type it pauses nothing, and stops nothing either
  local paused = type(flag) == 'string' and flag or ''
  -- Members and values that disagree in number count as due: promotion then tells the janitor. So does a key of another type,
  -- which promotion names.
  local function waiting(set, hash)
    local n = redis.pcall('ZCOUNT', set, '-inf', int(t))
    if n == 0 and redis.pcall('ZCARD', set) == redis.pcall('HLEN', hash) then return 0 end
    return type(n) == 'number' and math.max(n, 1) or 1
  end
  local due = waiting(KEYS[7], KEYS[10])
  local delayed = waiting(KEYS[8], KEYS[11])
  local compacted = redis.call('HGET', KEYS[9], 'compacted') or '0'
  return {beat, int(t), int(least or 0), paused, state, due, delayed, compacted, unpack(dead)}
end)
