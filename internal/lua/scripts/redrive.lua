-- redrive: puts dead letters back for their own group, counters at 0, by way of the parked set with due = now; or publishes
-- them anew to all groups.
-- KEYS: 1 main, 2 group due, 3 group parked, 4 dlq, 5 groups, 6… seen markers, one an id
-- ARGV: 1 group, 2 'main' to publish anew, 3 body that replaces the old one when 4 is 1, 4 0|1, 5… dead letters' entry ids
-- returns: a line an id: moved <member or new id> | gone | unredrivable | error <text>
return guarded(function()
  local group, anew = ARGV[1], ARGV[2] == 'main'
  local mark = redis.call('HGET', KEYS[5], group)
  if not anew and (not mark or string.sub(mark, 1, 1) == 'x') then
    return redis.error_reply('NOGROUP ' .. group .. ' does not exist')
  end
  local function one(id, seen)
    local f = entry(KEYS[4], id)
    if not f then return 'gone' end
    if ARGV[4] == '1' then
      local edited, done = {}, false
      for i = 1, #f, 2 do
        edited[i], edited[i + 1] = f[i], f[i + 1]
        if f[i] == 'body' and not done then edited[i + 1], done = ARGV[3], true end
      end
      if not done then
        edited[#edited + 1] = 'body'
        edited[#edited + 1] = ARGV[3]
      end
      f = edited
    end
    if not field(f, 'body') then return 'unredrivable' end
    local where
    local set = {rc = false, lost = false, losses = false, cut = false, reason = false}
    if anew then
      set.oid, set.err, set.redriven, set.due, set.from = false, false, false, false, stable(f, id)
      where = append(KEYS[1], rewrite(f, set))
    else
      local t = now()
      set.oid, set.redriven, set.due = stable(f, id), int(onemore(field(f, 'redriven'))), int(t)
      where = park(KEYS[3], KEYS[2], 'x/' .. id, rewrite(f, set), t)
      redis.call('DEL', seen)
    end
    redis.call('XDEL', KEYS[4], id)
    return 'moved ' .. where
  end
  local out = {}
  for i = 5, #ARGV do
    local ok, res = pcall(one, ARGV[i], KEYS[i + 1])
    out[#out + 1] = ok and res or 'error ' .. message(res)
  end
  return out
end)
