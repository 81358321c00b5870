-- find: looks for a stable id in a stream or in a hash of parked values, in bounded steps; bodies never leave the server.
-- KEYS: 1 stream, or hash
-- ARGV: 1 stable id, 2 entry id to begin with, or the hash's cursor, 3 most entries, 4 most bytes (of a stream), 5 'parked' or ''
-- returns: {entry id or member, next}: '' where nothing was found; next '' = that was all
return guarded(function()
  local id, from, limit, bytes = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
  if ARGV[5] == 'parked' then
    local r = redis.call('HSCAN', KEYS[1], from, 'COUNT', limit)
    local mark = '3:oid,' .. #id .. ':' .. id .. ','
    for i = 1, #r[2], 2 do
      if string.find(r[2][i + 1], mark, 1, true) then -- a body may hold these bytes too
        local f = unpacked(r[2][i + 1])
        if f and stable(f, '') == id then return {r[2][i], ''} end
      end
    end
    return {'', r[1] == '0' and '' or r[1]}
  end
  local ask = 2
  while limit > 0 and bytes > 0 do
    local n, got = math.min(ask, limit), 0
    local list = redis.call('XRANGE', KEYS[1], from, '+', 'COUNT', n)
    for _, e in ipairs(list) do
      if stable(e[2], e[1]) == id then return {e[1], ''} end
      got = got + size(e[2])
      from = after(e[1])
    end
    if #list < n or not from then return {'', ''} end
    limit, bytes = limit - n, bytes - got
    if got < 16384 then ask = math.min(ask * 4, 100) end
  end
  return {'', from}
end)
