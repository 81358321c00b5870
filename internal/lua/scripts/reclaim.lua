-- reclaim: empties a dead consumer in bounded steps. Its entries go to the retry stream; suspects are parked apart from
-- each other; what lost too many leases in a row is dead.
-- KEYS: 1 main, 2 retry, 3 group due, 4 group parked, 5 dlq, 6 workers
-- ARGV: 1 group, 2 the dead consumer, 3 most lost leases in a row, 4 most entries, 5 most bytes,
--       6 first delay of a suspect in ms, 7 its cap in ms, 8 where to go on ('' = at the beginning),
--       9… a random number 0–999999 an entry
-- returns: {next, moved, deleted, lines…}: next = where to go on, '' = that was all, or the owner is not dead;
--   a line for what is worth telling: dead <reason> <dlq id> <entry id> | deleted <entry id> | error <text>
return guarded(function()
  local k = {m = KEYS[1], r = KEYS[2], dlq = KEYS[5]}
  local group, owner = ARGV[1], ARGV[2]
  local l = lease(redis.call('HGET', KEYS[6], owner))
  if not l or l.state ~= 'dead' then return {'', 0, 0} end
  local budget, bytes, rand = tonumber(ARGV[4]), tonumber(ARGV[5]), 9
  local moved, deleted, out = 0, 0, {}

  local function one(src, id)
    local f = entry(k[src], id)
    if not f then
      ack(k, group, src, id)
      deleted = deleted + 1
      return 'deleted ' .. id
    end
    bytes = bytes - size(f)
    local had = counter(field(f, 'lost'))
    local lost = onemore(field(f, 'lost'))
    if had >= SUSPECT and not (src == 'r' and l.suspect == id) then lost = had end -- it was not the one running alone
    local set = {oid = stable(f, id), lost = int(lost), losses = int(onemore(field(f, 'losses')))}
    local said
    if lost > tonumber(ARGV[3]) then
      local at, why = bury(k, f, 'lost', set)
      said = 'dead ' .. why .. ' ' .. at .. ' ' .. id
    elseif lost >= SUSPECT and #f / 2 <= WIDE then
      local delay = math.min(tonumber(ARGV[7]), tonumber(ARGV[6]) * 2 ^ math.min(lost - SUSPECT, 30))
      delay = math.floor(delay * tonumber(ARGV[rand] or '0') / 1000000)
      rand = rand + 1
      park(KEYS[4], KEYS[3], src .. '/' .. id, rewrite(f, set), now() + delay)
    else
      said = hand(k, f, set)
      if said then said = said .. ' ' .. id end
    end
    ack(k, group, src, id)
    moved = moved + 1
    return said
  end

  local stream, from = string.match(ARGV[8], '^([mr])/(.+)$')
  for _, src in ipairs({'m', 'r'}) do
    local start = src == stream and from or '-'
    if src == 'm' and stream == 'r' then start = nil end
    while start do -- nil behind the last possible id
      if budget <= 0 or bytes <= 0 then return {src .. '/' .. start, moved, deleted, unpack(out)} end
      local list = redis.pcall('XPENDING', k[src], group, start, '+', math.min(budget, 50), owner)
      if list.err then
        if not string.find(list.err, 'NOGROUP', 1, true) then error(list.err, 0) end
        break
      end
      if not list[1] then break end
      for _, p in ipairs(list) do
        if budget <= 0 or bytes <= 0 then break end
        budget = budget - 1
        start = after(p[1])
        local ok, res = pcall(one, src, p[1])
        if not ok then res = 'error ' .. message(res) end
        if res then out[#out + 1] = res end
      end
    end
  end
  return {'', moved, deleted, unpack(out)}
end)
