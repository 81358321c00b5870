-- lag: counts the entries of a range, a bounded step; bodies never leave the server.
-- KEYS: 1 stream
-- ARGV: 1 id after which to count, 2 most entries, 3 most bytes, 4 where the range ends, as XRANGE takes it
-- returns: {counted, 1 when the end was reached, first id counted ('' = none), last id counted (with none where it began)}
return guarded(function()
  local n, first, last = 0, '', ARGV[1]
  local through = walk(KEYS[1], after(last), ARGV[4], tonumber(ARGV[2]), tonumber(ARGV[3]), function(id)
    if n == 0 then first = id end
    n, last = n + 1, id
  end)
  return {n, through and 1 or 0, first, last}
end)
