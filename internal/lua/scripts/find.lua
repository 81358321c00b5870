-- find: looks for a stable id in a hash of parked values, in bounded steps; bodies never leave the server.
-- KEYS: 1 hash
-- ARGV: 1 stable id, 2 the hash's cursor, 3 most values, 4 most bytes, 5 pattern of members
-- returns: {member, next}: '' where nothing was found; next '' = that was all
return guarded(function()
  local id, found = ARGV[1], ''
  local mark = '3:oid,' .. #id .. ':' .. id .. ','
  local cursor = scan(KEYS[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), function(member, value)
    if not string.find(value, mark, 1, true) then return false end -- a body may hold these bytes too
    local f = unpacked(value)
    if not f or stable(f, '') ~= id then return false end
    found = member
    return true
  end, ARGV[5])
  return {found, cursor == '0' and '' or cursor}
end)
