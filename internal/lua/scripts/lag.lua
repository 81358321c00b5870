-- lag: counts the entries of a range, a bounded step; bodies never leave the server.
-- KEYS: 1 stream
-- ARGV: 1 id after which to count, 2 most entries, 3 most bytes, 4 where the range ends, as XRANGE takes it
-- returns: {counted, last id counted, 1 when the end was reached}
return guarded(function()
  local n, at = 0, ARGV[1]
  local through = walk(KEYS[1], after(at), ARGV[4], tonumber(ARGV[2]), tonumber(ARGV[3]), function(id) n, at = n + 1, id end)
  return {n, at, through and 1 or 0}
end)
