-- find: looks for a stable id in a stream or in a hash of parked values, in bounded steps; bodies never leave the server.
-- KEYS: 1 stream, or hash
-- ARGV: 1 stable id, 2 entry id to begin with, or the hash's cursor, 3 most entries, 4 most bytes, 5 pattern of members, or ''
-- returns: {entry id or member, next}: '' where nothing was found; next '' = that was all
return guarded(function()
  local id, from, limit, bytes = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
  if ARGV[5] ~= '' then
    local mark, found = '3:oid,' .. #id .. ':' .. id .. ',', ''
    local cursor = scan(KEYS[1], from, limit, bytes, function(member, value)
      if not string.find(value, mark, 1, true) then return false end -- a body may hold these bytes too
      local f = unpacked(value)
      if not f or stable(f, '') ~= id then return false end
      found = member
      return true
    end, ARGV[5])
    return {found, cursor == '0' and '' or cursor}
  end
  local ask = 2
  while limit > 0 and bytes > 0 do
    local n, got = math.min(ask, limit), 0
    local list = redis.call('XRANGE', KEYS[1], from, '+', 'COUNT', n)
    for i = 1, #list do
      local f, oid = list[i][2], nil
      for j = 1, #f, 2 do
        got = got + #f[j] + #f[j + 1]
        if not oid and f[j] == 'oid' then oid = f[j + 1] end
      end
      if oid == id or list[i][1] == id and (not oid or oid == '') then return {list[i][1], ''} end
    end
    if #list < n then return {'', ''} end
    from = after(list[#list][1])
    if not from then return {'', ''} end
    limit, bytes = limit - n, bytes - got
    ask = got < 16384 and math.min(ask * 2, STEP) or 1
  end
  return {'', from}
end)
